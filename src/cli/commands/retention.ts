import type { Command } from 'commander';
import { runRetention } from '../../app/housekeeping.ts';
import { print, table } from '../output.ts';
import { wantsJson, withStore } from '../run.ts';

async function run(options: { readonly dryRun?: boolean }, command: Command): Promise<void> {
  await withStore(command, async ({ database }, config) => {
    const results = await runRetention(database, config.epoch_days, Date.now(), options.dryRun);
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
