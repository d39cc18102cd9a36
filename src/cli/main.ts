import { Command, CommanderError } from 'commander';
import { VERSION } from '../version.ts';
import { registerAgents } from './commands/agents.ts';
import { registerApiKeys } from './commands/apikeys.ts';
import { registerAudit } from './commands/audit.ts';
import { registerBackup } from './commands/backup.ts';
import { registerCompletion } from './commands/completion.ts';
import { registerConsent } from './commands/consent.ts';
import { registerContests } from './commands/contests.ts';
import { registerDemo } from './commands/demo.ts';
import { registerDev } from './commands/dev.ts';
import { registerDoctor } from './commands/doctor.ts';
import { registerDsar } from './commands/dsar.ts';
import { registerErase } from './commands/erase.ts';
import { registerInit } from './commands/init.ts';
import { registerKeys } from './commands/keys.ts';
import { registerMasterKey } from './commands/master-key.ts';
import { registerMigrate } from './commands/migrate.ts';
import { registerReplay } from './commands/replay.ts';
import { registerRestore } from './commands/restore.ts';
import { registerRetention } from './commands/retention.ts';
import { registerSeal } from './commands/seal.ts';
import { registerServe } from './commands/serve.ts';
import { registerStatus } from './commands/status.ts';
import { registerTenants } from './commands/tenants.ts';
import { registerTls } from './commands/tls.ts';
import { registerTop } from './commands/top.ts';
import { registerWebhooks } from './commands/webhooks.ts';
import { EXIT } from './output.ts';
import { fail } from './run.ts';

const program = new Command('gpd')
  .description('Self-hosted device identification with consent that can be proven.')
  .version(VERSION)
  .option('--config <file>', 'configuration file (default: gpd.toml here, if there is one)')
  .option('--json', 'one JSON value on stdout')
  .showHelpAfterError('(gpd --help lists the commands)')
  .exitOverride();

const registrars = [
  registerDemo,
  registerInit,
  registerServe,
  registerTenants,
  registerKeys,
  registerMasterKey,
  registerApiKeys,
  registerAgents,
  registerConsent,
  registerContests,
  registerAudit,
  registerErase,
  registerRetention,
  registerDsar,
  registerSeal,
  registerReplay,
  registerWebhooks,
  registerTls,
  registerMigrate,
  registerBackup,
  registerRestore,
  registerDoctor,
  registerStatus,
  registerTop,
  registerCompletion,
  registerDev,
];
for (const register of registrars) register(program);

/** Every subcommand takes --json and throws instead of leaving, so that the exit code is ours. */
function adopt(command: Command): void {
  command.exitOverride();
  if (command !== program && command.commands.length === 0) {
    command.option('--json', 'one JSON value on stdout').option('--config <file>', 'configuration file');
  }
  for (const child of command.commands) adopt(child);
}
adopt(program);

// What gpd writes holds keys and people's records: nobody else on this machine reads it.
process.umask(0o077);

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe went away (`gpd … | head`): that is no failure.
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  else fail(error);
}
