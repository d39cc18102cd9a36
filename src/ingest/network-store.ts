import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { purge } from '../db/purge.ts';
import { rowsOf } from '../db/sql.ts';
import { DAY } from '../lib/clock.ts';
import { unlessHeld } from './legal-holds.ts';

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
