import { statSync } from 'node:fs';
import type { Database } from '../../db/db.ts';
import { rowsOf } from '../../db/sql.ts';

/** How much of everything there is, for metrics and `gpd status`: cheap enough to ask every few seconds. */

export type Stock = Awaited<ReturnType<typeof readStock>>;

const SQL = `SELECT (SELECT count(*) FROM tenants) AS tenants,
  (SELECT coalesce(sum(size), 0) FROM ledger_heads) AS entries,
  (SELECT count(*) FROM webhook_outbox WHERE state = 'waiting') AS waiting,
  (SELECT count(*) FROM webhook_outbox WHERE state = 'failed') AS failed`;

type Row = Readonly<Record<'tenants' | 'entries' | 'waiting' | 'failed', number | string>>;

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

async function bytesOf(database: Database, location: string): Promise<number> {
  if (database.kind === 'sqlite') return sizeOf(location);
  const [row] = rowsOf<{ n: number }>(
    await database.read.raw('SELECT pg_database_size(current_database()) AS n'),
  );
  return Number(row?.n ?? 0);
}

/** @param location the file of an SQLite database */
export async function readStock(database: Database, location: string) {
  const [row] = rowsOf<Row>(await database.read.raw(SQL));
  return {
    tenants: Number(row?.tenants ?? 0),
    ledgerEntries: Number(row?.entries ?? 0),
    webhooksWaiting: Number(row?.waiting ?? 0),
    webhooksFailed: Number(row?.failed ?? 0),
    databaseBytes: await bytesOf(database, location),
    /** Of SQLite's write-ahead log. */
    walBytes: database.kind === 'sqlite' ? sizeOf(`${location}-wal`) : 0,
  };
}

export type Traffic = Awaited<ReturnType<typeof readTraffic>>;

/** Decisions that are kept, by when they were made. Reads the whole table: for a person who asks. */
export async function readTraffic(database: Database, now: number) {
  const since = (ms: number) =>
    database.read.raw('SUM(CASE WHEN decided_at > ? THEN 1 ELSE 0 END)', [now - ms]);
  const [row] = (await database.read('decisions').select({
    total: database.read.raw('count(*)'),
    minute: since(60_000),
    hour: since(3_600_000),
    day: since(86_400_000),
  })) as Record<string, unknown>[];
  const classes = (await database
    .read('decisions')
    .where('decided_at', '>', now - 86_400_000)
    .groupBy('class')
    .select('class')
    .count({ n: '*' })) as { class: string; n: unknown }[];
  const number = (value: unknown): number => Number(value ?? 0);
  return {
    total: number(row?.['total']),
    lastMinute: number(row?.['minute']),
    lastHour: number(row?.['hour']),
    lastDay: number(row?.['day']),
    /** Of the last day. */
    byClass: Object.fromEntries(classes.map((found) => [found.class, number(found.n)])),
  };
}
