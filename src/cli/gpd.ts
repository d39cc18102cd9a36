import { Command, CommanderError, Help } from 'commander';
import { VERSION } from '../version.ts';
import { CommandFailed, EXIT, endWith, type Io, io, misused, printable, withIo } from './io-service.ts';

/** The command line of gpd: the list of commands, and `run`, which `main.ts` and the tests call. */

/** Commands in the order of the help text. A command's file is loaded only for a call that names it. */
const COMMANDS = {
  demo: [
    'take a tour in a temporary data directory, with two weeks of visits',
    () => import('./commands/demo.ts'),
  ],
  init: [
    'create the data directory, the master key, the database and the first tenant',
    () => import('./commands/init.ts'),
  ],
  serve: ['run the server', () => import('./commands/serve.ts')],
  tenants: ['tenants and their settings', () => import('./commands/tenants.ts')],
  policy: ['rule weights that outcomes suggest', () => import('./commands/policy.ts')],
  keys: ['seal keys of the tenants, and the master key', () => import('./commands/keys.ts')],
  'master-key': ['the master key on paper', () => import('./commands/master-key.ts')],
  apikeys: ['API keys for consent and for reading verdicts', () => import('./commands/apikeys.ts')],
  staff: ['staff who sign in to the console with a passkey', () => import('./commands/staff.ts')],
  agents: ['directories of Web Bot Auth agents', () => import('./commands/agents.ts')],
  consent: [
    'the consent ledger: purposes, policies, decisions, proofs',
    () => import('./commands/consent.ts'),
  ],
  contests: ['the review queue', () => import('./commands/contests.ts')],
  audit: [
    'show the audit log: who did what, as keyed references, newest first',
    () => import('./commands/audit.ts'),
  ],
  erase: ['erase what is held about a person (audited)', () => import('./commands/erase.ts')],
  retention: ['delete what is past its retention period', () => import('./commands/retention.ts')],
  rights: ['notices to people, and the register of their requests', () => import('./commands/rights.ts')],
  dsar: ['exports for people who ask what is held about them', () => import('./commands/dsar.ts')],
  evidence: [
    'write what people chose and its proofs to a file that a lawyer can hand over (audited)',
    () => import('./commands/evidence.ts'),
  ],
  seal: ['seal the plaintext on standard input; print the bundle', () => import('./commands/seal.ts')],
  replay: [
    'replay bundles from NDJSON (- for standard input), offline without writing, or against a server',
    () => import('./commands/replay.ts'),
  ],
  webhooks: [
    'targets that receive decisions and consent (Standard Webhooks)',
    () => import('./commands/webhooks.ts'),
  ],
  witness: [
    'servers of others that cosign the checkpoints of these logs',
    () => import('./commands/witness.ts'),
  ],
  tls: ['certificates for https without a proxy', () => import('./commands/tls.ts')],
  migrate: [
    'bring the database schema up to date (`serve` does it too)',
    () => import('./commands/migrate.ts'),
  ],
  backup: [
    'write everything but the master key to one encrypted file; the server may be running',
    () => import('./commands/backup.ts'),
  ],
  restore: [
    'replace the database with a backup, or fill an empty data directory',
    () => import('./commands/restore.ts'),
  ],
  move: ['copy all data of a stopped installation into another database', () => import('./commands/move.ts')],
  doctor: [
    'find present and coming problems and show what to do; change nothing',
    () => import('./commands/doctor.ts'),
  ],
  status: [
    'show the health of the running server and what the database holds',
    () => import('./commands/status.ts'),
  ],
  top: [
    'show live rates, classes, queues and latency; once with --json or in a pipe',
    () => import('./commands/top.ts'),
  ],
  mcp: [
    'answer questions of a coding agent about this installation, read-only (Model Context Protocol)',
    () => import('./commands/mcp.ts'),
  ],
  completion: ['print a completion script for bash, zsh or fish', () => import('./commands/completion.ts')],
} satisfies Readonly<
  Record<string, readonly [about: string, load: () => Promise<{ define(command: Command): void }>]>
>;

/** The command that needs the definitions of all others: its script completes them. */
const NEEDS_ALL = 'completion';

/**
 * Names every argument: commander names the last, although the first, the tenant, is the one that people
 * leave out.
 */
function missingArgument(command: Command): string {
  const all = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  if (all.length === 1) return `missing argument ${all.join('')}`;
  return `missing argument: expected ${all.join(' ')}, got ${command.args.length || 'none'}`;
}

/** An empty argument is mostly a variable of the shell that has no value. */
function refuseEmptyArguments({ args, registeredArguments }: Command, path: string): void {
  const at = args.findIndex((word) => word.trim() === '');
  if (at === -1) return;
  const argument = registeredArguments[Math.min(at, registeredArguments.length - 1)];
  throw misused(`argument <${argument?.name()}> is empty; \`${path} --help\` shows how to use it`);
}

/** Turns commander's errors into gpd's own, with the help text to read. */
function refuseAsGpd(command: Command, path: string): void {
  command.exitOverride((error) => {
    if (error.exitCode === 0 || error.code === 'commander.help') throw error;
    const unknown = command.args.find((word) => /^--?[a-z]/.test(word));
    // A misspelt option is the likely reason that another is missing: name that one.
    if (error.code === 'commander.missingMandatoryOptionValue' && unknown !== undefined)
      (command as Command & { unknownOption(flag: string): never }).unknownOption(unknown);
    const problem =
      error.code === 'commander.missingArgument'
        ? missingArgument(command)
        : error.message.replace(/^error: /, '').replaceAll('\n', ' ');
    throw misused(`${problem}; \`${path} --help\` shows how to use it`);
  });
  if (command.commands.length === 0) command.hook('preAction', () => refuseEmptyArguments(command, path));
  for (const child of command.commands) refuseAsGpd(child, `${path} ${child.name()}`);
}

/** @param isNeeded which commands are loaded; the others have only a name and a description */
export async function createProgram(isNeeded: (name: string) => boolean = () => true): Promise<Command> {
  const program = new Command('gpd')
    .description('Self-hosted device identification with consent that can be proven.')
    .version(VERSION)
    .option('--config <file>', 'configuration file (default: gpd.toml here, if there is one)')
    .option('--json', 'one JSON value on stdout')
    .configureHelp({
      showGlobalOptions: true,
      optionDescription: (option) =>
        `${new Help().optionDescription(option)}${option.mandatory ? ' (required)' : ''}`,
    })
    .configureOutput({
      writeOut: (text) => void io().stdout.write(text),
      writeErr: (text) => void io().stderr.write(printable(text)),
      outputError: () => {},
    });
  for (const [name, [about, load]] of Object.entries(COMMANDS)) {
    const command = program.command(name).description(about);
    if (isNeeded(name)) (await load()).define(command);
  }
  refuseAsGpd(program, 'gpd');
  return program;
}

/** Runs one command, as `gpd ARGV` does. @returns the exit code (contract section 9); it never throws */
export function run(argv: readonly string[], streams: Io): Promise<number> {
  return withIo(streams, async () => {
    try {
      const program = await createProgram((name) => argv.includes(name) || argv.includes(NEEDS_ALL));
      program.hook('preAction', (_program, command) => {
        streams.globalOptions = command.optsWithGlobals();
      });
      await program.parseAsync([...argv], { from: 'user' });
    } catch (error) {
      if (error instanceof CommanderError) streams.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
      else if (error instanceof CommandFailed) endWith(error);
      // Loaded for a failure alone: it imports the errors of every room.
      else endWith((await import('./failure-service.ts')).commandFailureOf(error));
    }
    return streams.exitCode;
  });
}
