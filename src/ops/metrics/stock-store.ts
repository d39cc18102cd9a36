import { statSync } from 'node:fs';
import { databaseSize } from '../../db/database-file.ts';
import type { Database } from '../../db/engine.ts';
import { LAST_SWEEP, readMetaNumber } from '../../db/meta-store.ts';
import { cellOf, rowsOf } from '../../db/sql.ts';
import { DAY, HOUR, MINUTE } from '../../lib/clock.ts';
import { talliedUntil } from '../../rights/tally-store.ts';
import { incompleteErasures, lastBackupAt, overdueContests } from '../doctor/inspect-store.ts';

/**
 * Counts tenants, entries, deliveries and decisions for metrics, `gpd status` and `gpd top`: cheap enough for
 * every few seconds.
 */

export type Stock = Awaited<ReturnType<typeof readStock>>;
export type Traffic = Awaited<ReturnType<typeof readTraffic>>;

const SQL = `SELECT (SELECT count(*) FROM tenants) AS tenants,
  (SELECT coalesce(sum(size), 0) FROM ledger_heads) AS entries,
  (SELECT count(*) FROM webhook_outbox WHERE state = 'waiting') AS waiting,
  (SELECT count(*) FROM webhook_outbox WHERE state = 'failed') AS failed,
  (SELECT max((SELECT c.at FROM checkpoints c WHERE c.kid = h.kid ORDER BY c.size DESC LIMIT 1)) FROM ledger_heads h) AS checkpoint,
  (SELECT min(coalesce(published_at, created_at)) FROM seal_keys WHERE state = 'published') AS seal_key`;

type Row = Readonly<Record<'tenants' | 'entries' | 'waiting' | 'failed', number | string>> &
  Readonly<Record<'checkpoint' | 'seal_key', number | string | null>>;

const timeOf = (cell: number | string | null | undefined): number | null =>
  cell == null ? null : Number(cell);

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** @param location the file of an SQLite database */
export async function readStock(database: Database, location: string, now: number) {
  const isFile = database.kind === 'sqlite';
  const [row] = rowsOf<Row>(await database.read.raw(SQL));
  return {
    kind: database.kind,
    tenants: Number(row?.tenants ?? 0),
    ledgerEntries: Number(row?.entries ?? 0),
    webhooksWaiting: Number(row?.waiting ?? 0),
    webhooksFailed: Number(row?.failed ?? 0),
    databaseBytes: isFile ? sizeOf(location) : await databaseSize(database),
    /** Size of SQLite's write-ahead log; 0 on PostgreSQL. */
    walBytes: isFile ? sizeOf(`${location}-wal`) : 0,
    overdueContests: await overdueContests(database, now),
    incompleteErasures: await incompleteErasures(database, now),
    /** Times are null where it never happened. */
    lastBackupAt: await lastBackupAt(database),
    lastSweepAt: await readMetaNumber(database, LAST_SWEEP),
    newestCheckpointAt: timeOf(row?.checkpoint),
    oldestSealKeyAt: timeOf(row?.seal_key),
  };
}

/**
 * Rows that the hourly tallies do not have yet are counted one by one; a tally counts as if made in the
 * middle of its hour.
 */
const TRAFFIC = `SELECT class, SUM(n) AS total, SUM(CASE WHEN at > ? THEN fresh ELSE 0 END) AS minute,
    SUM(CASE WHEN at > ? THEN n ELSE 0 END) AS hour, SUM(CASE WHEN at > ? THEN n ELSE 0 END) AS day
  FROM (SELECT class, decided_at AS at, 1 AS n, 1 AS fresh FROM decisions WHERE kid = ? AND decided_at > ?
    UNION ALL SELECT name, hour + ${HOUR / 2}, n, 0 FROM tallies WHERE kid = ? AND kind = 'verdict' AND hour > ?) AS counted
  GROUP BY class`;

type TrafficRow = Readonly<Record<'class', string> & Record<'total' | 'minute' | 'hour' | 'day', unknown>>;

/** Counts the stored decisions by age: approximately, except for those of the last minute. */
export async function readTraffic(database: Database, now: number) {
  const { read } = database;
  const traffic = { total: 0, lastMinute: 0, lastHour: 0, lastDay: 0 };
  /** Decisions of the last day. */
  const byClass: Record<string, number> = {};
  for (const kid of (await read('tenants').pluck('kid')) as string[]) {
    const countedUntil = (await talliedUntil(database, kid)) ?? -1;
    const first =
      (await cellOf<number>(read('decisions').where({ kid }).orderBy('decided_at'), 'decided_at')) ?? now;
    const windows = [now - MINUTE, now - HOUR, now - DAY];
    const rows = rowsOf<TrafficRow>(
      await read.raw(TRAFFIC, [...windows, kid, countedUntil, kid, Number(first) - HOUR]),
    );
    for (const { class: name, total, minute, hour, day } of rows) {
      traffic.total += Number(total);
      traffic.lastMinute += Number(minute);
      traffic.lastHour += Number(hour);
      traffic.lastDay += Number(day);
      if (Number(day) > 0) byClass[name] = (byClass[name] ?? 0) + Number(day);
    }
  }
  return { ...traffic, byClass };
}
