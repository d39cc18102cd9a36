import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { purge } from '../db/purge.ts';
import { rowsOf, whereAmong } from '../db/sql.ts';
import { DAY } from '../lib/clock.ts';

const WEEK_DAYS = 7;

/**
 * Marks are salted hashes that live for their day (UTC) and no longer;
 * counts live for the week they are asked about.
 */
export async function purgeNetworks(database: Database, at: number): Promise<void> {
  const today = Math.floor(at / DAY);
  const weekAgo = today - WEEK_DAYS;
  const before = (
    table: 'network_marks' | 'network_days',
    key: readonly string[],
    day: number,
  ): Promise<number> => purge(database, table, key, (rows) => unlessHeld(rows.where('day', '<', day), table));
  await before('network_marks', ['day', 'kid', 'durable', 'network'], today);
  await before('network_days', ['day', 'kid', 'durable'], weekAgo);
  await purge(database, 'network_totals', ['kid', 'day', 'shard'], (rows) => rows.where('day', '<', weekAgo));
}

/**
 * Rows of any day: the day comes first in the key, so that each day that is stored takes one seek. A server that was off, or whose
 * clock was ahead, has other days than the last week's.
 */
export function ofStoredDays(rows: Knex.QueryBuilder, table: string) {
  return rows.whereRaw(
    `day IN (WITH RECURSIVE days (day) AS (SELECT min(day) FROM ${table}
      UNION ALL SELECT (SELECT min(next.day) FROM ${table} next WHERE next.day > days.day) FROM days WHERE days.day IS NOT NULL)
      SELECT day FROM days WHERE day IS NOT NULL)`,
  );
}

/** Deletes these rows of `network_days`, and takes what they counted from their tenant's totals. */
export async function deleteNetworkDays(tx: Knex.Transaction, kid: string, rows: Knex.QueryBuilder) {
  // Knex has no RETURNING for a DELETE on SQLite.
  const { sql, bindings } = rows.delete().toSQL();
  const returned: unknown = await tx.raw(`${sql} RETURNING day, networks`, [...bindings]);
  const gone = rowsOf<{ readonly day: number; readonly networks: number }>(returned);
  for (const day of new Set(gone.map((row) => row.day))) {
    const pairs = gone.reduce((sum, row) => (row.day === day ? sum + row.networks : sum), 0);
    // A total is the sum of its shards, so that any one of them will do.
    const shard = tx('network_totals').where({ kid, day }).min('shard');
    await tx('network_totals').where({ kid, day }).where('shard', shard).decrement('pairs', pairs);
  }
  return gone.length;
}

/** Legal holds (GDPR articles 17(3) and 18(2)) as deletions meet them: a held device keeps all of its rows. */

/** The basis of each of these devices that is held. */
export async function holdsOn(
  db: Knex,
  kid: string,
  durables: readonly string[],
): Promise<Map<string, string>> {
  const rows = whereAmong(db('legal_holds').where({ kid }), db, 'durable', durables);
  const found = (await rows.select('durable', 'basis')) as { durable: string; basis: string }[];
  return new Map(found.map(({ durable, basis }) => [durable, basis]));
}

/** Leaves out rows of held devices. @param table of `rows`, with a column `durable` */
export function unlessHeld(rows: Knex.QueryBuilder, table: string): Knex.QueryBuilder {
  const sql = 'NOT EXISTS (SELECT 1 FROM legal_holds h WHERE h.kid = ??.kid AND h.durable = ??.durable)';
  return rows.whereRaw(sql, [table, table]);
}

/** The same of rows that name their device by a request. */
export function unlessRequestHeld(rows: Knex.QueryBuilder, table: string): Knex.QueryBuilder {
  const sql = `NOT EXISTS (SELECT 1 FROM decisions d JOIN legal_holds h ON h.kid = d.kid AND h.durable = d.durable
    WHERE d.kid = ??.kid AND d.request_id = ??.request_id)`;
  return rows.whereRaw(sql, [table, table]);
}
