import type { Knex } from 'knex';
import { type SealedTo, sealedTo } from '../audit/sealed-to-store.ts';
import type { Database } from '../db/db.ts';
import { countOf } from '../db/sql.ts';
import { impersonalEntry } from '../ledger/entries.ts';
import { EMPTY_FRONTIER } from '../ledger/frontier.ts';
import { addCommitments, type SealedBody, sealedBody } from '../ledger/sealed-root.ts';
import { chunksOf } from '../lib/chunks.ts';
import { HOUR, MINUTE } from '../lib/clock.ts';
import { appendOne, lockHead } from './append-store.ts';

/**
 * Every hour's rows of a table are sealed into the tenant's log by one root over their commitments, so that a changed or
 * missing one is noticed.
 */
export interface SealedTable {
  readonly type: 'verdicts.sealed' | 'audit.sealed';
  readonly rows: 'decisions' | 'audit_log';
  /** The column of `rows` with the moment in epoch milliseconds. */
  readonly at: 'decided_at' | 'at';
  /** Retention deletes old ones: `sealedTo` keeps how far is sealed. */
  readonly seals: 'verdict_seals' | 'audit_seals';
  /** The column of `ledger_heads` with the end of the last sealed hour; 0: none is sealed yet. */
  readonly sealedTo: SealedTo;
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

/** A batch that was stamped before the hour ended may commit a little later. */
const LATE_MS = 2 * MINUTE;

/** The oldest hour that is over, has rows and is not sealed. */
export async function nextHour(
  database: Database,
  table: SealedTable,
  kid: string,
  now: number,
): Promise<number | null> {
  const from = await sealedTo(database.read, table.sealedTo, kid);
  const oldest = await database
    .read(table.rows)
    .where({ kid })
    .where(table.at, '>=', from)
    .min<{ at: number | null }[]>({ at: table.at })
    .first();
  if (oldest?.at == null) return null;
  const hour = Math.floor(Number(oldest.at) / HOUR) * HOUR;
  return hour + HOUR + LATE_MS <= now ? hour : null;
}

/** Rows of a short read. */
export const PIECE = 2000;

/** In pieces: requests are answered in between. */
export async function bodyOf(hour: number, commitments: readonly string[]): Promise<SealedBody> {
  let frontier = EMPTY_FRONTIER;
  for (const some of chunksOf(commitments, PIECE)) {
    frontier = addCommitments(frontier, some);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return sealedBody(hour, hour + HOUR, frontier);
}

/** False: an erasure came in between. */
async function sealHour(
  database: Database,
  table: SealedTable,
  kid: string,
  hour: number,
  now: number,
): Promise<boolean> {
  const { commitments, live } = await table.read(database.read, kid, hour);
  const body = await bodyOf(hour, commitments);
  return database.transaction(async (tx) => {
    // First of all: an erasure takes this lock too, and must find the hour sealed or not sealed.
    await lockHead(tx, kid);
    const rows = tx(table.rows).where({ kid }).where(table.at, '>=', hour);
    rows.where(table.at, '<', hour + HOUR);
    // One that came before the lock took rows that were read: read again.
    if ((await countOf(rows)) !== live) return false;
    // Another node sealed it.
    if ((await sealedTo(tx, table.sealedTo, kid)) > hour) return true;
    await tx('ledger_heads')
      .where({ kid })
      .update({ [table.sealedTo]: hour + HOUR });
    const entry = impersonalEntry({ type: table.type, at: now, purpose: null }, { ...body });
    const { seq } = await appendOne(tx, kid, entry);
    await tx(table.seals).insert({ kid, hour, seq, count: body.count, root: body.root });
    return true;
  });
}

/** Seals every hour that is over. Returns how many. Off the hot path, safe on many nodes. */
export async function sealHours(
  database: Database,
  table: SealedTable,
  kid: string,
  now: number,
): Promise<number> {
  let count = 0;
  for (;;) {
    const hour = await nextHour(database, table, kid, now);
    if (hour === null) return count;
    if (await sealHour(database, table, kid, hour, now)) count += 1;
  }
}
