import { Command, CommanderError } from 'commander';
import { VERSION } from '../version.ts';
import { type Io, io, withIo } from './io.ts';
import { EXIT, printable } from './output.ts';
import { checkKid, fail } from './run.ts';

/** In the order that help shows them in. */
const COMMANDS = {
  demo: async () => (await import('./commands/demo.ts')).registerDemo,
  init: async () => (await import('./commands/init.ts')).registerInit,
  serve: async () => (await import('./commands/serve.ts')).registerServe,
  tenants: async () => (await import('./commands/tenants.ts')).registerTenants,
  keys: async () => (await import('./commands/keys.ts')).registerKeys,
  'master-key': async () => (await import('./commands/master-key.ts')).registerMasterKey,
  apikeys: async () => (await import('./commands/apikeys.ts')).registerApiKeys,
  agents: async () => (await import('./commands/agents.ts')).registerAgents,
  consent: async () => (await import('./commands/consent.ts')).registerConsent,
  contests: async () => (await import('./commands/contests.ts')).registerContests,
  audit: async () => (await import('./commands/audit.ts')).registerAudit,
  erase: async () => (await import('./commands/erase.ts')).registerErase,
  retention: async () => (await import('./commands/retention.ts')).registerRetention,
  dsar: async () => (await import('./commands/dsar.ts')).registerDsar,
  seal: async () => (await import('./commands/seal.ts')).registerSeal,
  replay: async () => (await import('./commands/replay.ts')).registerReplay,
  webhooks: async () => (await import('./commands/webhooks.ts')).registerWebhooks,
  witness: async () => (await import('./commands/witness.ts')).registerWitness,
  tls: async () => (await import('./commands/tls.ts')).registerTls,
  migrate: async () => (await import('./commands/migrate.ts')).registerMigrate,
  backup: async () => (await import('./commands/backup.ts')).registerBackup,
  restore: async () => (await import('./commands/restore.ts')).registerRestore,
  doctor: async () => (await import('./commands/doctor.ts')).registerDoctor,
  status: async () => (await import('./commands/status.ts')).registerStatus,
  top: async () => (await import('./commands/top.ts')).registerTop,
  completion: async () => (await import('./commands/completion.ts')).registerCompletion,
} satisfies Readonly<Record<string, () => Promise<(to: Command) => void>>>;

/** It shows every command there is. */
const SHOWS_ALL = 'completion';

/** To load the code of one command takes half the time: all are loaded only for who has to see them all. */
async function registerAsked(program: Command, argv: readonly string[]): Promise<void> {
  const asked = program.parseOptions([...argv]).operands[0] ?? '';
  const isOne = Object.hasOwn(COMMANDS, asked) && asked !== SHOWS_ALL;
  const loaders = isOne ? [COMMANDS[asked as keyof typeof COMMANDS]] : Object.values(COMMANDS);
  for (const register of await Promise.all(loaders.map((load) => load()))) register(program);
}

/** Every subcommand takes --json and throws instead of leaving, so that the exit code is ours. */
function adopt(command: Command): void {
  command.exitOverride();
  for (const argument of command.registeredArguments)
    if (argument.required && argument.name() === 'kid') argument.argParser(checkKid);
  if (command.parent !== null && command.commands.length === 0) {
    command.option('--json', 'one JSON value on stdout').option('--config <file>', 'configuration file');
  }
  for (const child of command.commands) adopt(child);
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
  adopt(program);
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
