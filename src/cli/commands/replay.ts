import { statSync } from 'node:fs';
import type { Command } from 'commander';
import { tryOr } from '../../lib/errors.ts';
import {
  type CommandContext,
  checkInteger,
  checkServer,
  command,
  example,
  type Flags,
} from '../command-service.ts';
import { EXIT, io, misused, notFound, print, say, tableLines } from '../io-service.ts';
import { createBar } from '../progress-service.ts';
import { type ReplayLine, readLines } from '../replay/line-files.ts';
import { offlineRunner, type ReplayAnswer, type Runner, remoteRunner } from '../replay/runners-service.ts';
import { readPolicyFile } from './policy.ts';

export function define(replay: Command): void {
  replay
    .argument('<file>', 'the file')
    .option('--url <url>', 'send them to this server')
    .option('--policy <file>', 'show which verdicts this policy would change')
    .option('--concurrency <n>', 'how many requests to send at once, with --url', '1')
    .addHelpText('after', example('gpd replay bundles.ndjson --policy policy.json'))
    .action(command(replayBundles));
}

interface Tally {
  total: number;
  readonly byReason: Record<string, number>;
  readonly byClass: Record<string, number>;
  mismatches: number;
  /** `human → unknown`: verdicts that another policy would change. */
  readonly changed: Record<string, number>;
  /** The first few, for a person to look at. */
  readonly examples: { readonly line: number; readonly expected: string; readonly got: string }[];
}

const EXAMPLES = 20;

function describe(reason: string | undefined, visitorClass: string | null | undefined): string {
  return [reason, visitorClass].filter((part) => part != null).join(' ');
}

function count(tally: Tally, line: ReplayLine, answer: ReplayAnswer): void {
  tally.total += 1;
  tally.byReason[answer.reason] = (tally.byReason[answer.reason] ?? 0) + 1;
  if (answer.class !== null) tally.byClass[answer.class] = (tally.byClass[answer.class] ?? 0) + 1;
  if (answer.shadowClass !== null && answer.shadowClass !== answer.class) {
    const change = `${answer.class} → ${answer.shadowClass}`;
    tally.changed[change] = (tally.changed[change] ?? 0) + 1;
  }
  const { expect } = line;
  const differs =
    (expect.reason !== undefined && expect.reason !== answer.reason) ||
    (expect.class !== undefined && expect.class !== answer.class);
  if (!differs) return;
  tally.mismatches += 1;
  if (tally.examples.length < EXAMPLES) {
    const expected = describe(expect.reason, expect.class);
    tally.examples.push({ line: line.number, expected, got: describe(answer.reason, answer.class) });
  }
}

function sizeOf(file: string): number | null {
  if (file === '-') return null;
  const size = tryOr(() => statSync(file).size, null);
  if (size === null) throw notFound(`cannot read ${file}; name an NDJSON file, or - for standard input`);
  return size;
}

/**
 * Replays the lines in order, `concurrency` at a time. With more than one, either of two duplicates may be
 * the replay.
 */
async function replayFile(file: string, run: Runner, concurrency: number): Promise<Tally> {
  const tally: Tally = { total: 0, byReason: {}, byClass: {}, changed: {}, mismatches: 0, examples: [] };
  const totalBytes = sizeOf(file);
  const progress = createBar('bundles');
  const lines = readLines(file);
  const work = async (): Promise<void> => {
    for await (const { line, bytes } of lines) {
      count(tally, line, await run(line));
      progress.update({ done: tally.total, bytes, totalBytes });
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, work));
    return tally;
  } finally {
    progress.end();
  }
}

function report(tally: Tally, withPolicy: boolean): void {
  const { total, byReason, byClass, changed, mismatches, examples } = tally;
  const summary = { total, byReason, byClass, mismatches, ...(withPolicy ? { changed } : {}) };
  print(summary, () => {
    const table = (heading: string, counts: Record<string, number>): string[] => {
      const rows = Object.entries(counts).sort((a, b) => b[1] - a[1]);
      return [...tableLines(rows, { [heading]: 0, BUNDLES: ([, n]) => n.toLocaleString('en') }), ''];
    };
    return [
      ...table('REASON', byReason),
      ...table('CLASS', byClass),
      ...(withPolicy ? table('VERDICT WOULD CHANGE', changed) : []),
      `${total.toLocaleString('en')} bundles, ${mismatches} other than expected`,
    ];
  });
  for (const { line, expected, got } of examples) say(`line ${line}: expected ${expected}, got ${got}`);
  if (mismatches > 0) io().exitCode = EXIT.failure;
}

async function replayBundles(
  { services }: CommandContext,
  file: string,
  options: Flags<'url' | 'policy'> & { readonly concurrency: string },
): Promise<void> {
  const { url } = options;
  const concurrency = checkInteger('--concurrency', options.concurrency, [1, 256], 'from 1 to 256');
  if (url !== undefined && options.policy !== undefined) throw misused('--policy works offline: omit --url');
  const policy = options.policy === undefined ? null : readPolicyFile(options.policy);
  checkServer(url);
  const tally =
    url === undefined
      ? await replayFile(file, await offlineRunner(await services(), policy), 1)
      : await replayFile(file, remoteRunner(url), concurrency);
  report(tally, policy !== null);
}
