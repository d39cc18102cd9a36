import type { Knex } from 'knex';
import { type SealedTo, sealedTo } from '../audit/sealed-to-store.ts';
import type { Database } from '../db/db.ts';
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

const PIECE = 2000;

/** In pieces: requests are answered in between. */
async function bodyOf(hour: number, commitments: readonly string[]): Promise<SealedBody> {
  let frontier = EMPTY_FRONTIER;
  for (const some of chunksOf(commitments, PIECE)) {
    frontier = addCommitments(frontier, some);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return sealedBody(hour, hour + HOUR, frontier);
}

async function countRows(tx: Knex, table: SealedTable, kid: string, hour: number): Promise<number> {
  const counted = await tx(table.rows)
    .where({ kid })
    .where(table.at, '>=', hour)
    .where(table.at, '<', hour + HOUR)
    .count<{ n: number }[]>({ n: '*' });
  return Number(counted[0]?.n ?? 0);
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
    // One that came before the lock took rows that were read: read again.
    if ((await countRows(tx, table, kid, hour)) !== live) return false;
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

interface SealRow {
  readonly seq: number;
  readonly count: number;
  readonly root: string;
}

/** In one snapshot: an erasure or a retention meanwhile is no tampering. */
async function checkHour(
  database: Database,
  table: SealedTable,
  kid: string,
  hour: number,
): Promise<readonly string[]> {
  const found = await database.snapshot(async (tx) => {
    const seal = await tx(table.seals)
      .where({ kid, hour })
      .first<SealRow | undefined>('seq', 'count', 'root');
    // Retention deleted it since the hours were listed, and deletes its rows next.
    if (!seal) return null;
    const { commitments } = await table.read(tx, kid, hour);
    const { seq } = seal;
    const entry = await tx('ledger_entries')
      .where({ kid, seq })
      .first<{ entry: string } | undefined>('entry');
    return { seal, commitments, entry: entry?.entry ?? '' };
  });
  if (!found) return [];
  const { seal, entry } = found;
  const at = new Date(hour).toISOString();
  const problems: string[] = [];
  if (!entry.includes(JSON.stringify(seal.root)))
    problems.push(`the seal of ${at} is not the one in the log`);
  const body = await bodyOf(hour, found.commitments);
  if (body.root === seal.root) return problems;
  const missing = seal.count - body.count;
  problems.push(
    missing > 0
      ? `${missing} of ${seal.count} ${table.noun} of ${at} are missing`
      : `the ${table.noun} of ${at} are not the sealed ones`,
  );
  return problems;
}

/** Holds every sealed hour against the rows that are there. Problems in words; the log itself is checked apart. */
export async function checkHours(
  database: Database,
  table: SealedTable,
  kid: string,
): Promise<readonly string[]> {
  const hours = (await database.read(table.seals).where({ kid }).orderBy('hour').pluck('hour')) as unknown[];
  const problems: string[] = [];
  for (const hour of hours) problems.push(...(await checkHour(database, table, kid, Number(hour))));
  return problems;
}
