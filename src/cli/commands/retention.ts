import type { Command } from 'commander';
import { reasonOf } from '../../app/jobs.ts';
import { runRetention } from '../../app/retention.ts';
import { Unavailable } from '../../lib/errors.ts';
import { CommandFailed, print, table } from '../output.ts';
import { wantsJson, withStore } from '../run.ts';

async function run(options: { readonly dryRun?: boolean }, command: Command): Promise<void> {
  await withStore(command, async ({ database }, config) => {
    const { results, failures } = await runRetention(database, config.epoch_days, Date.now(), options.dryRun);
    print(wantsJson(command), results, () => [
      ...table([
        ['TENANT', 'DECISIONS', 'CONTESTS', 'LINKS', 'SIGHTINGS', 'INDEX', 'AUDIT'],
        ...results.map((row) =>
          [row.kid, row.decisions, row.contests, row.links, row.sightings, row.visitorIndex, row.audit].map(
            String,
          ),
        ),
      ]),
      ...(options.dryRun === true ? ['Nothing was changed.'] : []),
    ]);
    const [first] = failures;
    if (!first) return;
    // The database's own trouble, and a time to try again.
    if (failures.every(({ error }) => error instanceof Unavailable)) throw first.error;
    const failed = failures.map(({ kid, error }) => `${kid ?? 'listing the tenants'} (${reasonOf(error)})`);
    throw new CommandFailed('failure', `retention failed for ${failed.join(', ')}`);
  });
}

export function registerRetention(program: Command): void {
  const group = program.command('retention').description('what time alone takes away');
  group
    .command('run')
    .description('delete what is older than each tenant keeps (the server does it every hour)')
    .option('--dry-run', 'say how much would go, and change nothing')
    .option('--yes', 'taken as everywhere; this command never asks, for a timer runs it')
    .action(run);
}
