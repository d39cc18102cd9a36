import type { Database } from '../db/db.ts';
import { cellOf, type HotTransaction, rowsOf, runHot } from '../db/sql.ts';
import type { RecordEntry } from './ports.ts';

/** What a later bundle of the same session supersedes. */

/** One that was erased meanwhile, or superseded already, is left alone. */
export async function writeUpdates(tx: HotTransaction, entries: readonly RecordEntry[]): Promise<void> {
  for (const { kid, after, verdict } of entries) {
    if (after === undefined) continue;
    await runHot(
      tx,
      `INSERT INTO decision_updates (kid, earlier, request_id)
        SELECT kid, request_id, ? FROM decisions WHERE kid = ? AND request_id = ? ON CONFLICT DO NOTHING`,
      [verdict.requestId, kid, after],
    );
  }
}

export async function supersededBy({ read }: Database, kid: string, requestId: string) {
  const rows = read('decision_updates').where({ kid, earlier: requestId });
  return (await cellOf<string>(rows, 'request_id')) ?? null;
}

/** A longer chain is not made, so that one short query reads a whole one. */
export const MAX_UPDATES = 32;

type End = 'earlier' | 'request_id';

/** That request, then each that a step leads to: from an `earlier` to what superseded it, or back. */
async function walk({ read }: Database, kid: string, requestId: string, [from, to]: readonly [End, End]) {
  // A scalar subquery: PostgreSQL has no statistics of these columns, and might join by reading the whole table.
  const next = `SELECT ${to} FROM decision_updates WHERE kid = ? AND ${from} = chain.id`;
  const found: unknown = await read.raw(
    `WITH RECURSIVE chain(id, step) AS (
      SELECT CAST(? AS text), 0 UNION ALL
      SELECT (${next}), step + 1 FROM chain WHERE id IS NOT NULL AND step < ${MAX_UPDATES}
    ) SELECT id FROM chain WHERE id IS NOT NULL ORDER BY step`,
    [requestId, kid],
  );
  return rowsOf<{ readonly id: string }>(found).map(({ id }) => id);
}

/** What a right that is presented with this request reaches: it, and what superseded it. */
export const withLater = (database: Database, kid: string, requestId: string): Promise<string[]> =>
  walk(database, kid, requestId, ['earlier', 'request_id']);

/** Whether this request supersedes so many in a row that no other may supersede it. */
export async function endsChain(database: Database, kid: string, requestId: string): Promise<boolean> {
  return (await walk(database, kid, requestId, ['request_id', 'earlier'])).length > MAX_UPDATES;
}
