import type { Knex } from 'knex';
import { type AnchoredTo, anchoredTo } from '../audit/store.ts';
import type { Database } from '../db/db.ts';
import { cellOf, countOf } from '../db/sql.ts';
import { addCommitments, anchorBody } from '../ledger/anchored-root.ts';
import { impersonalEntry } from '../ledger/entries.ts';
import { EMPTY_FRONTIER } from '../ledger/frontier.ts';
import { chunksOf } from '../lib/chunks.ts';
import { HOUR, MINUTE } from '../lib/clock.ts';
import { appendOne, lockHead } from './append-store.ts';
import type { EntryMacs } from './entry-check.ts';
import { floorHour } from './fold.ts';

/**
 * Every hour's rows of a table are anchored into the tenant's log by one root over their commitments, so that a changed or
 * missing one is noticed.
 */
export interface AnchoredTable {
  readonly type: 'verdicts.sealed' | 'audit.sealed';
  readonly rows: 'decisions' | 'audit_log';
  /** The column of `rows` with the moment in epoch milliseconds. */
  readonly at: 'decided_at' | 'at';
  /** Retention deletes old ones: `anchoredTo` keeps how far is anchored. */
  readonly anchors: 'verdict_seals' | 'audit_seals';
  /** The column of `ledger_heads` with the end of the last anchored hour; 0: none is anchored yet. */
  readonly anchoredTo: AnchoredTo;
  /** What one row is called when something is wrong. */
  readonly noun: string;
  readonly read: (db: Knex, kid: string, hour: number) => Promise<HourRead>;
  /** Rows of an hour that are not what they committed to, each in words. */
  readonly changed: (db: Database, kid: string, hour: number) => AsyncIterable<string>;
}

/** An hour may hold a million rows: it is read in short pieces. */
export interface HourRead {
  /** In their order, with those of rows that were erased. */
  readonly commitments: readonly string[];
  /** How many rows are there. */
  readonly live: number;
}

export function rowsOfHour(db: Knex, table: AnchoredTable, kid: string, hour: number): Knex.QueryBuilder {
  const rows = db(table.rows).where({ kid }).where(table.at, '>=', hour);
  return rows.where(table.at, '<', hour + HOUR);
}

/** A batch that was stamped before the hour ended may commit a little later. */
const LATE_MS = 2 * MINUTE;

/** The oldest hour that is over, has rows and is not anchored. */
export async function nextHour(database: Database, table: AnchoredTable, kid: string, now: number) {
  const from = await anchoredTo(database.read, table.anchoredTo, kid);
  const rows = database.read(table.rows).where({ kid }).where(table.at, '>=', from);
  const oldest = await cellOf<number>(rows.orderBy(table.at), table.at);
  if (oldest === undefined) return null;
  const hour = floorHour(Number(oldest));
  return hour + HOUR + LATE_MS <= now ? hour : null;
}

/** Rows of a short read. */
export const PIECE = 2000;

/** In pieces: requests are answered in between. */
export async function bodyOf(hour: number, commitments: readonly string[]) {
  let frontier = EMPTY_FRONTIER;
  for (const some of chunksOf(commitments, PIECE)) {
    frontier = addCommitments(frontier, some);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return anchorBody(hour, hour + HOUR, frontier);
}

interface AnchoredLog {
  readonly kid: string;
  /** Without them the entry counts as forged. */
  readonly macs: EntryMacs | undefined;
}

/** False: an erasure came in between. */
async function anchorHour(
  database: Database,
  table: AnchoredTable,
  { kid, macs }: AnchoredLog,
  hour: number,
  now: number,
) {
  const { commitments, live } = await table.read(database.read, kid, hour);
  const body = await bodyOf(hour, commitments);
  return database.transaction(async (tx) => {
    // First of all: an erasure takes this lock too, and must find the hour anchored or not anchored.
    await lockHead(tx, kid);
    // One that came before the lock took rows that were read: read again.
    if ((await countOf(rowsOfHour(tx, table, kid, hour))) !== live) return false;
    // Another node anchored it.
    if ((await anchoredTo(tx, table.anchoredTo, kid)) > hour) return true;
    await tx('ledger_heads')
      .where({ kid })
      .update({ [table.anchoredTo]: hour + HOUR });
    const entry = impersonalEntry({ type: table.type, at: now, purpose: null }, body);
    const { seq } = await appendOne(tx, kid, entry, macs);
    await tx(table.anchors).insert({ kid, hour, seq, count: body.count, root: body.root });
    return true;
  });
}

/** Anchors every hour that is over. Returns how many. Off the hot path, safe on many nodes. */
export async function anchorHours(database: Database, table: AnchoredTable, log: AnchoredLog, now: number) {
  let count = 0;
  for (;;) {
    const hour = await nextHour(database, table, log.kid, now);
    if (hour === null) return count;
    if (await anchorHour(database, table, log, hour, now)) count += 1;
  }
}
