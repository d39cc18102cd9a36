import { statSync } from 'node:fs';
import { applyPolicy } from '../../ingest/classify/policy.ts';
import { parseUrl } from '../../lib/url.ts';
import type { Actions } from '../define.ts';
import { io } from '../io.ts';
import { EXIT, misused, notFound, print, say, table } from '../output.ts';
import { readPolicyFile } from '../policy-file.ts';
import { makeBar } from '../progress.ts';
import { BadLine, readLines } from '../replay/lines.ts';
import { offlineRunner, type Runner, remoteRunner } from '../replay/runners.ts';
import { count, type Tally } from '../replay/tally.ts';
import { type Flags, withStore } from '../run.ts';

function sizeOf(file: string): number | null {
  if (file === '-') return null;
  try {
    return statSync(file).size;
  } catch {
    throw notFound(`cannot read ${file}; name an NDJSON file, or - for standard input`);
  }
}

/** In the order of the file, `concurrency` at a time: with more than one, which of two duplicates wins is open. */
async function replayFile(file: string, run: Runner, concurrency: number): Promise<Tally> {
  const tally: Tally = { total: 0, byReason: {}, byClass: {}, changed: {}, mismatches: 0, examples: [] };
  const totalBytes = sizeOf(file);
  const progress = makeBar('bundles');
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
  } catch (error) {
    if (error instanceof BadLine) throw misused(error.message);
    throw error;
  } finally {
    progress.end();
  }
}

function report(tally: Tally, withPolicy: boolean): void {
  const { total, byReason, byClass, changed, mismatches, examples } = tally;
  const summary = { total, byReason, byClass, mismatches, ...(withPolicy ? { changed } : {}) };
  print(summary, () => {
    const rows = (counts: Record<string, number>): string[][] =>
      Object.entries(counts)
        .sort((a, b) => b[1] - a[1])
        .map(([name, n]) => [name, n.toLocaleString('en')]);
    return [
      ...table([['REASON', 'BUNDLES'], ...rows(byReason)]),
      '',
      ...table([['CLASS', 'BUNDLES'], ...rows(byClass)]),
      '',
      ...(withPolicy ? [...table([['VERDICT WOULD CHANGE', 'BUNDLES'], ...rows(changed)]), ''] : []),
      `${total.toLocaleString('en')} bundles, ${mismatches} other than expected`,
    ];
  });
  for (const { line, expected, got } of examples) say(`line ${line}: expected ${expected}, got ${got}`);
  if (mismatches > 0) io().exitCode = EXIT.failure;
}

async function replay(file: string, options: Flags<'url' | 'policy' | 'concurrency'>): Promise<void> {
  const concurrency = Number(options.concurrency);
  if (!Number.isSafeInteger(concurrency) || concurrency < 1 || concurrency > 256)
    throw misused('--concurrency must be from 1 to 256');
  const { url } = options;
  if (url !== undefined && options.policy !== undefined) throw misused('--policy works offline: omit --url');
  const policy = options.policy === undefined ? null : applyPolicy(readPolicyFile(options.policy));
  if (url !== undefined && parseUrl(url) === null) throw misused('--url must be the address of a server');
  const tally =
    url === undefined
      ? await withStore(async (store, config) =>
          replayFile(file, await offlineRunner(store, config, policy), 1),
        )
      : await replayFile(file, remoteRunner(url), concurrency);
  report(tally, policy !== null);
}

export const ACTIONS: Actions = { '': [replay, { concurrency: '1' }] };
