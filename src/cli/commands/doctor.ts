import type { Command } from 'commander';
import { withClosing } from '../../lib/collections.ts';
import type { Report } from '../../ops/doctor/doctor-service.ts';
import type { Status } from '../../ops/doctor/finding.ts';
import { VERSION } from '../../version.ts';
import { type CommandContext, checkServer, command, example, type Flags } from '../command-service.ts';
import { alignColumns, EXIT, io, print, printLine, printWrapped, wantsJson } from '../io-service.ts';

export function define(doctor: Command): void {
  doctor
    .option('--all', 'also show what passed')
    .option('--url <url>', 'the running server, if it is not the one in this configuration')
    .option('--record', 'store the counts in the data directory, for /metrics')
    .addHelpText('after', example('gpd doctor --all'))
    .action(command(examineAll));
}

const ORDER: readonly Status[] = ['fail', 'warn', 'pass', 'skipped'];

const COLOURS = { fail: 'red', warn: 'yellow', pass: 'green', skipped: 'grey' } as const;

/** Columns before a remedy, and before the second line of a long sentence. */
const INDENT = 9;

/**
 * Failures come first, then warnings, each with its remedy, which neighbours share. Passed and skipped checks
 * need --all.
 */
function show({ checks, counts }: Report, all: boolean): void {
  const shown = ORDER.flatMap((status) => checks.filter((check) => check.status === status)).filter(
    ({ status }) => all || status === 'fail' || status === 'warn',
  );
  const rows = alignColumns(shown.map(({ status, id, detail }) => [status, id, detail]));
  shown.forEach(({ status, id, remedy }, i) => {
    printWrapped(rows[i] ?? '', INDENT, COLOURS[status]);
    const next = shown[i + 1];
    if (remedy !== undefined && (remedy !== next?.remedy || id !== next.id))
      printWrapped(`${' '.repeat(INDENT)}${remedy}`, INDENT);
  });
  const total = ORDER.map((status) => `${counts[status]} ${status}`).join(', ');
  printLine(`${new Set(checks.map(({ id }) => id)).size} checks: ${total}`);
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
  if (wantsJson()) print(report, () => []);
  else show(report, all === true);
  if (record === true) writeDoctorRecord(config.data_dir, report, options.now);
  if (!report.ok) io().exitCode = EXIT.failure;
}
