import type { Knex } from 'knex';

/** Requests that a large erasure has marked: every read leaves them out until steps have deleted their rows. */

/**
 * Leaves out marked requests.
 * @param table of `rows`, or its alias, with the columns `kid` and `request_id`
 */
export function unmarked(rows: Knex.QueryBuilder, table: string): Knex.QueryBuilder {
  return rows.whereRaw(
    `NOT EXISTS (SELECT 1 FROM erasing CROSS JOIN erasures WHERE erasing.kid = ??.kid
      AND erasing.request_id = ??.request_id AND erasures.receipt_id = erasing.receipt_id)`,
    [table, table],
  );
}

/** Decisions that no erasure has marked, and that this one has not staged. */
export function unstaged(decisions: Knex.QueryBuilder, receiptId: string): Knex.QueryBuilder {
  return unmarked(
    decisions.whereRaw(
      'NOT EXISTS (SELECT 1 FROM erasing WHERE receipt_id = ? AND erasing.request_id = decisions.request_id)',
      [receiptId],
    ),
    'decisions',
  );
}

/** From the first of these ids to the last. They must be in the order of the database. */
export const between = (rows: Knex.QueryBuilder, ids: readonly string[]): Knex.QueryBuilder =>
  rows.whereBetween('erasing.request_id', [ids[0] ?? '', ids.at(-1) ?? '']);

/** Marked requests between the first of these ids and the last. */
export async function markedBetween(db: Knex, kid: string, ids: readonly string[]) {
  const rows = db('erasing').join('erasures', 'erasures.receipt_id', 'erasing.receipt_id');
  return new Set<string>(await between(rows.where('erasing.kid', kid), ids).pluck('erasing.request_id'));
}
