import type { Database } from '../db/db.ts';
import { type EntryCode, type EntryMacs, makeEntryCheck } from './entry-check.ts';
import type { LogProblem } from './problem.ts';
import { readMacedEntries } from './read-store.ts';

export interface NewEntryProblem extends LogProblem {
  readonly code: EntryCode;
}

const PAGE = 1000;

/** What is wrong with the entries of a part of a log, before anything is signed that covers them. */
export async function checkNewEntries(
  database: Database,
  kid: string,
  part: { readonly from: number; readonly to: number; readonly macs: EntryMacs; readonly now?: number },
): Promise<readonly NewEntryProblem[]> {
  const { from, to, macs, now } = part;
  const problems: NewEntryProblem[] = [];
  const check = makeEntryCheck({ macs, now, add: (code, what, seq) => problems.push({ code, what, seq }) });
  for (let at = from; at < to; ) {
    const page = await readMacedEntries(database, kid, at, Math.min(PAGE, to - at));
    for (const entry of page) check(entry);
    if (page.length === 0) break;
    at = (page.at(-1)?.seq ?? at) + 1;
  }
  return problems;
}
