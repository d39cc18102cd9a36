import type { Database } from '../../db/db.ts';
import { cellOf, countOf } from '../../db/sql.ts';
import { unmarked } from '../../ingest/erasing-store.ts';
import type { Verdict } from '../../ingest/verdict.ts';
import { type ContestRow, rowToContest } from '../contests/store.ts';

/** What a reviewer sees with a contested decision: the same device's other visits and contests. */

/** The newest first. */
export async function deviceTrail(database: Database, kid: string, durable: string, limit: number) {
  const rows = (await unmarked(database.read('decisions').where({ kid, durable }), 'decisions')
    .orderBy('request_id', 'desc')
    .limit(limit)
    .pluck('verdict')) as string[];
  return rows.map((text) => {
    const verdict = JSON.parse(text) as Verdict;
    const { requestId, decidedAt, suspectScore, overridden, needsAttestation } = verdict;
    return { requestId, decidedAt, class: verdict.class, suspectScore, overridden, needsAttestation };
  });
}

/** At most `cap + 1`. */
export function countTrail(database: Database, kid: string, durable: string, cap: number): Promise<number> {
  const some = unmarked(database.read('decisions').where({ kid, durable }), 'decisions')
    .select('request_id')
    .limit(cap + 1)
    .as('some');
  return countOf(database.read(some));
}

/** Contests of the same device, the newest first, without what was written. */
export async function deviceContests(database: Database, kid: string, durable: string, limit: number) {
  const rows = (await database
    .read('contests')
    .where({ kid, durable })
    .orderBy('contest_id', 'desc')
    .limit(limit)) as ContestRow[];
  return rows.map((row) => rowToContest(row, null));
}

/** When the oldest decision that is still held was made. */
export async function oldestDecision(database: Database, kid: string): Promise<number | null> {
  const decisions = database.read('decisions').where({ kid }).orderBy('decided_at');
  return (await cellOf<number>(decisions, 'decided_at')) ?? null;
}
