import { Command, CommanderError } from 'commander';
import { VERSION } from '../version.ts';
import { type Actions, define } from './define.ts';
import { type Io, io, withIo } from './io.ts';
import { EXIT, printable } from './output.ts';
import { fail } from './run.ts';

/** In the order that help shows them in. */
const COMMANDS = {
  demo: () => import('./commands/demo.ts'),
  init: () => import('./commands/init.ts'),
  serve: () => import('./commands/serve.ts'),
  tenants: () => import('./commands/tenants.ts'),
  policy: () => import('./commands/policy.ts'),
  keys: () => import('./commands/keys.ts'),
  'master-key': () => import('./commands/master-key.ts'),
  apikeys: () => import('./commands/apikeys.ts'),
  staff: () => import('./commands/staff.ts'),
  agents: () => import('./commands/agents.ts'),
  consent: () => import('./commands/consent.ts'),
  contests: () => import('./commands/contests.ts'),
  audit: () => import('./commands/audit.ts'),
  erase: () => import('./commands/erase.ts'),
  retention: () => import('./commands/retention.ts'),
  rights: () => import('./commands/rights.ts'),
  dsar: () => import('./commands/dsar.ts'),
  seal: () => import('./commands/seal.ts'),
  replay: () => import('./commands/replay.ts'),
  webhooks: () => import('./commands/webhooks.ts'),
  witness: () => import('./commands/witness.ts'),
  tls: () => import('./commands/tls.ts'),
  migrate: () => import('./commands/migrate.ts'),
  backup: () => import('./commands/backup.ts'),
  restore: () => import('./commands/restore.ts'),
  move: () => import('./commands/move.ts'),
  doctor: () => import('./commands/doctor.ts'),
  status: () => import('./commands/status.ts'),
  top: () => import('./commands/top.ts'),
  completion: () => import('./commands/completion.ts'),
} satisfies Readonly<Record<string, () => Promise<{ readonly ACTIONS: Actions }>>>;

/** It shows every command there is. */
const SHOWS_ALL = 'completion';

/** To load the code of one command takes half the time: all are loaded only for who has to see them all. */
async function registerAsked(program: Command, argv: readonly string[]): Promise<void> {
  const asked = program.parseOptions([...argv]).operands[0] ?? '';
  const isOne = Object.hasOwn(COMMANDS, asked) && asked !== SHOWS_ALL;
  const names = (isOne ? [asked] : Object.keys(COMMANDS)) as (keyof typeof COMMANDS)[];
  const loaded = await Promise.all(names.map(async (name) => [name, await COMMANDS[name]()] as const));
  for (const [name, { ACTIONS }] of loaded) define(program, name, ACTIONS);
}

/** The commands that this call needs. */
export async function makeProgram(argv: readonly string[]): Promise<Command> {
  const program = new Command('gpd')
    .description('Self-hosted device identification with consent that can be proven.')
    .version(VERSION)
    .option('--config <file>', 'configuration file (default: gpd.toml here, if there is one)')
    .option('--json', 'one JSON value on stdout')
    .showHelpAfterError('(gpd --help lists the commands)')
    .configureOutput({
      writeOut: (text) => void io().stdout.write(text),
      writeErr: (text) => void io().stderr.write(printable(text)),
    })
    .exitOverride();
  await registerAsked(program, argv);
  return program;
}

/** Runs one command, as `gpd ARGV` does. @returns the exit code (contract section 9); it never throws */
export function run(argv: readonly string[], streams: Io): Promise<number> {
  return withIo(streams, async () => {
    try {
      const program = await makeProgram(argv);
      program.hook('preAction', (_program, command) => {
        streams.asked = command.optsWithGlobals();
      });
      await program.parseAsync([...argv], { from: 'user' });
    } catch (error) {
      if (error instanceof CommanderError) streams.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
      else fail(error);
    }
    return streams.exitCode;
  });
}
