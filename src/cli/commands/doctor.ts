import type { Command } from 'commander';
import { withClosing } from '../../lib/collections.ts';
import type { Report } from '../../ops/doctor/doctor-service.ts';
import type { Status } from '../../ops/doctor/finding.ts';
import { VERSION } from '../../version.ts';
import { type CommandContext, checkServer, command, example, type Flags } from '../command-service.ts';
import { alignColumns, EXIT, io, print } from '../io-service.ts';

export function define(doctor: Command): void {
  doctor
    .option('--all', 'also show what passed')
    .option('--url <url>', 'the running server, if it is not the one in this configuration')
    .option('--record', 'store the counts in the data directory, for /metrics')
    .addHelpText('after', example('gpd doctor --all'))
    .action(command(examineAll));
}

const ORDER: readonly Status[] = ['fail', 'warn', 'pass', 'skipped'];

/** Failures come first, then warnings, each with its remedy. Passed and skipped checks need --all. */
function lines({ checks, counts }: Report, all: boolean): string[] {
  const shown = ORDER.flatMap((status) => checks.filter((check) => check.status === status)).filter(
    ({ status }) => all || status === 'fail' || status === 'warn',
  );
  const rows = alignColumns(shown.map(({ status, id, detail }) => [status, id, detail]));
  const withRemedies = shown.flatMap(({ remedy }, i) => [
    rows[i] ?? '',
    ...(remedy === undefined ? [] : [`         ${remedy}`]),
  ]);
  const total = ORDER.map((status) => `${counts[status]} ${status}`).join(', ');
  const number = new Set(checks.map(({ id }) => id)).size;
  return [...withRemedies, `${number} checks: ${total}`];
}

type DoctorFlags = Flags<'url', 'all' | 'record'>;

async function examineAll({ config }: CommandContext, { url, all, record }: DoctorFlags): Promise<void> {
  checkServer(url);
  // Loaded for this command alone, so that `gpd serve` starts faster.
  const [{ examine }, { openContext }, { writeDoctorRecord }] = await Promise.all([
    import('../../ops/doctor/doctor-service.ts'),
    import('../../ops/doctor/context-service.ts'),
    import('../../ops/doctor/record-files.ts'),
  ]);
  const options = { version: VERSION, now: Date.now(), url: url && new URL(url).origin };
  const report = await withClosing(openContext(config, options), (context) => examine(context));
  print(report, () => lines(report, all === true));
  if (record === true) writeDoctorRecord(config.data_dir, report, options.now);
  if (!report.ok) io().exitCode = EXIT.failure;
}
