import { randomInt } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { purge } from '../db/purge.ts';
import {
  type Bindings,
  cellOf,
  insertMany,
  rowsOf,
  runAsked,
  runSql,
  sendTogether,
  type Transaction,
  whereAmong,
} from '../db/sql.ts';
import { DAY, SECOND } from '../lib/clock.ts';
import type { DeviceQuery, RecordEntry } from './ports.ts';
import type { KnownDevice } from './verdict/identity.ts';

/** The history of devices: facts to judge a sighting by, networks, and legal holds. */

const WEEK_DAYS = 7;
const TOTALS_MS = 10 * SECOND;

export type ReadTotal = (db: Knex, kid: string, day: number) => Promise<number>;

/**
 * Reads a tenant's number of (device, network) pairs in the week that ends with a day. The sum is read every
 * ten seconds at most, because the share that it is for changes slowly.
 * @param monotonic milliseconds that no clock change affects
 */
export function createTotals(monotonic: () => number): ReadTotal {
  const totals = new Map<string, { readonly at: number; readonly pairs: number }>();
  return async (db, kid, day) => {
    const now = monotonic();
    const cachedTotals = totals.get(kid);
    if (cachedTotals && now - cachedTotals.at < TOTALS_MS) return cachedTotals.pairs;
    const sql = 'SELECT SUM(pairs) AS pairs FROM network_totals WHERE kid = ? AND day > ?';
    const [sum] = await runSql<{ pairs: number | null }>(db, sql, [kid, day - WEEK_DAYS]);
    const pairs = Number(sum?.pairs ?? 0);
    totals.set(kid, { at: now, pairs });
    return pairs;
  };
}

const QUERY_COLUMNS = { durable: 'text', day: 'integer', network: 'text' } as const;

/** Takes one seek per day, because the day comes first in the key. */
const DAYS = Array.from({ length: WEEK_DAYS }, (_, i) => `q.day - ${i}`).join(', ');

/** Subqueries instead of joins: each is one seek, even if PostgreSQL's statistics are wrong. */
const DEVICES = `SELECT q.i AS i,
    (SELECT s.seen FROM sightings s WHERE s.kid = ? AND s.durable = q.durable) AS seen,
    (SELECT o.created_at FROM overrides o WHERE o.kid = ? AND o.durable = q.durable) AS overridden,
    (SELECT m.day FROM network_marks m
      WHERE m.kid = ? AND m.durable = q.durable AND m.day = q.day AND m.network = q.network) AS marked,
    (SELECT d.networks FROM network_days d WHERE d.kid = ? AND d.durable = q.durable AND d.day = q.day) AS today,
    (SELECT SUM(w.networks) FROM network_days w
      WHERE w.kid = ? AND w.durable = q.durable AND w.day IN (${DAYS})) AS week
  FROM q`;

interface DeviceRow
  extends Readonly<Record<'seen' | 'overridden' | 'today' | 'marked' | 'week', number | null>> {
  readonly i: number;
}

/** @param pairs the tenant's number of pairs this week */
function toKnown({ seen, overridden, today, marked, week }: DeviceRow, pairs: number): KnownDevice {
  const extra = marked === null ? 1 : 0;
  return {
    seen: seen !== null,
    neverAutomation: overridden !== null,
    marked: marked !== null,
    spread: {
      networksToday: Number(today ?? 0) + extra,
      pairsOfWeek: Number(week ?? 0) + extra,
      tenantPairsOfWeek: pairs,
    },
  };
}

/**
 * Reads the known facts of each queried device, in that order; `spread` counts this sighting already.
 * @param queries of one tenant
 */
export async function lookUpDevices(db: Knex, readTotal: ReadTotal, queries: readonly DeviceQuery[]) {
  const [firstQuery] = queries;
  if (!firstQuery) return [];
  const { kid, day } = firstQuery;
  const pairs = await readTotal(db, kid, day);
  const rows = queries.map((query): Bindings => [query.durable, query.day, query.network]);
  const question = { columns: QUERY_COLUMNS, rows, sql: DEVICES };
  const knownDevices: KnownDevice[] = [];
  for (const row of await runAsked<DeviceRow>(db, question, kid, kid, kid, kid, kid))
    knownDevices[Number(row.i)] = toKnown(row, pairs);
  return knownDevices;
}

// The networks of a device on a day.

/** Each node adds to a shard that it picks, so that writers of a tenant's total do not queue. */
const SHARDS = 8;
const shard = randomInt(SHARDS);

/** A device and its network of a day. */
export const pairOf = ({
  durable,
  day,
  network,
}: {
  durable: string;
  day: number;
  network: string;
}): string => `${durable}|${day}|${network}`;

/**
 * The networks of a device on a day, with the counts that outlive their marks.
 * @returns the pairs that were not marked before
 */
export async function countNetworks(tx: Transaction, kid: string, entries: readonly RecordEntry[]) {
  const marks = new Map<string, Bindings>();
  for (const { identified } of entries) {
    if (!identified || identified.marked) continue;
    const { durable, day, network } = identified;
    marks.set(pairOf(identified), [kid, durable, day, network]);
  }
  // Another node may have marked some of them since the look-up; those are counted already.
  const claimed = await insertMany<{ durable: string; day: number; network: string }>(
    tx,
    'INSERT INTO network_marks (kid, durable, day, network)',
    [...marks].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row),
    'ON CONFLICT DO NOTHING RETURNING durable, day, network',
  );
  const perDevice = claimed.map(({ durable, day }): Bindings => [kid, durable, day]);
  const perTenant = claimed.map(({ day }): Bindings => [kid, day, shard]);
  await sendTogether(
    () => addCounts(tx, 'network_days', ['kid', 'durable', 'day'], 'networks', perDevice),
    () => addCounts(tx, 'network_totals', ['kid', 'day', 'shard'], 'pairs', perTenant),
  );
  return new Set(claimed.map(pairOf));
}

/** Adds to the count of each key how often it occurs here, in the order of the keys. */
export async function addCounts(
  tx: Transaction,
  table: string,
  key: readonly string[],
  count: string,
  keys: readonly Bindings[],
): Promise<void> {
  const sums = new Map<string, number>();
  for (const one of keys) {
    const id = JSON.stringify(one);
    sums.set(id, (sums.get(id) ?? 0) + 1);
  }
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
  await insertMany(
    tx,
    `INSERT INTO ${table} (${[...key, count].join(', ')})`,
    rows.map(([id, sum]): Bindings => [...(JSON.parse(id) as Bindings), sum]),
    `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${count} = ${table}.${count} + excluded.${count}`,
  );
}

/** Salted marks are kept for their day (UTC), counts for the week that queries cover. */
export async function purgeNetworks(database: Database, at: number): Promise<void> {
  const today = Math.floor(at / DAY);
  const weekAgo = today - WEEK_DAYS;
  const purgeBefore = (
    table: 'network_marks' | 'network_days',
    key: readonly string[],
    day: number,
  ): Promise<number> => purge(database, table, key, (rows) => unlessHeld(rows.where('day', '<', day), table));
  await purgeBefore('network_marks', ['day', 'kid', 'durable', 'network'], today);
  await purgeBefore('network_days', ['day', 'kid', 'durable'], weekAgo);
  await purge(database, 'network_totals', ['kid', 'day', 'shard'], (rows) => rows.where('day', '<', weekAgo));
}

/**
 * Rows of any day: the day comes first in the key, so that each day that is stored takes one seek. A server
 * that was off, or whose clock was ahead, has other days than the last week's.
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
  const deletedDays = rowsOf<{ readonly day: number; readonly networks: number }>(returned);
  for (const day of new Set(deletedDays.map((row) => row.day))) {
    const pairs = deletedDays.reduce((sum, row) => (row.day === day ? sum + row.networks : sum), 0);
    // A total is the sum of its shards, so any shard may be changed.
    const shard = tx('network_totals').where({ kid, day }).min('shard');
    await tx('network_totals').where({ kid, day }).where('shard', shard).decrement('pairs', pairs);
  }
  return deletedDays.length;
}

/**
 * Deletes these rows of `visitor_index` by the key of the table: to delete by the device alone SQLite reads
 * all rows of the tenant.
 */
export async function deleteVisitorIds(
  tx: Knex.Transaction,
  kid: string,
  rows: Knex.QueryBuilder,
): Promise<number> {
  const ids = (await rows.pluck('visitor_id')) as string[];
  return whereAmong(tx('visitor_index').where({ kid }), tx, 'visitor_id', ids).delete();
}

/** True when a review found that a person uses the device. */
export async function isConfirmed({ read }: Database, kid: string, durable: string): Promise<boolean> {
  return (await cellOf(read('overrides').where({ kid, durable }), 'kid')) !== undefined;
}

/**
 * The basis of each of these devices under a legal hold (GDPR articles 17(3) and 18(2)): a held device keeps
 * all of its rows.
 */
export async function holdsOn(
  db: Knex,
  kid: string,
  durables: readonly string[],
): Promise<Map<string, string>> {
  const rows = whereAmong(db('legal_holds').where({ kid }), db, 'durable', durables);
  const holdRows = (await rows.select('durable', 'basis')) as { durable: string; basis: string }[];
  return new Map(holdRows.map(({ durable, basis }) => [durable, basis]));
}

/** Leaves out rows of held devices. @param table of `rows`, with a column `durable` */
export function unlessHeld(rows: Knex.QueryBuilder, table: string): Knex.QueryBuilder {
  const sql = 'NOT EXISTS (SELECT 1 FROM legal_holds h WHERE h.kid = ??.kid AND h.durable = ??.durable)';
  return rows.whereRaw(sql, [table, table]);
}

/** Excludes rows under a legal hold where they name their device by a request. */
export function unlessRequestHeld(rows: Knex.QueryBuilder, table: string): Knex.QueryBuilder {
  const sql = `NOT EXISTS (SELECT 1 FROM decisions d JOIN legal_holds h ON h.kid = d.kid AND h.durable = d.durable
    WHERE d.kid = ??.kid AND d.request_id = ??.request_id)`;
  return rows.whereRaw(sql, [table, table]);
}
