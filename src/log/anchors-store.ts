import type { Knex } from 'knex';
import { type AnchoredTo, type AuditFields, anchoredTo, auditText } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { type Bindings, cellOf, countOf, insertMany, pagesOf } from '../db/sql.ts';
import {
  addCommitments,
  anchorBody,
  commitAudit,
  commitVerdict,
  impersonalEntry,
} from '../ledger/entries.ts';
import { EMPTY_FRONTIER } from '../ledger/merkle.ts';
import { HOUR, MINUTE } from '../lib/clock.ts';
import { chunksOf } from '../lib/collections.ts';
import { appendOne, lockHead } from './entries-store.ts';
import { floorHour } from './fold.ts';
import type { EntryMacs } from './problems.ts';

/**
 * Each hour's rows of a table are anchored in the tenant's log by one root over their commitments, so that a
 * changed or missing row is noticed. Housekeeping calls this once an hour.
 */
export interface AnchoredTable {
  readonly type: 'verdicts.sealed' | 'audit.sealed';
  readonly rows: 'decisions' | 'audit_log';
  /** The column of `rows` with the moment in epoch milliseconds. */
  readonly at: 'decided_at' | 'at';
  /** Retention deletes old anchors: `anchoredTo` still says how far the log is anchored. */
  readonly anchors: 'verdict_seals' | 'audit_seals';
  /** The column of `ledger_heads` with the end of the last anchored hour; 0: no hour is anchored yet. */
  readonly anchoredTo: AnchoredTo;
  /** The word for one row in problem reports. */
  readonly noun: string;
  readonly read: (db: Knex, kid: string, hour: number) => Promise<HourRead>;
  /** Describes each row of an hour that differs from its commitment. */
  readonly changed: (db: Database, kid: string, hour: number) => AsyncIterable<string>;
}

/** An hour may have a million rows: they are read in short pieces. */
export interface HourRead {
  /** In their order, including those of erased rows. */
  readonly commitments: readonly string[];
  /** The number of rows that still exist. */
  readonly live: number;
}

function rowsOfHour(db: Knex, table: AnchoredTable, kid: string, hour: number): Knex.QueryBuilder {
  const rows = db(table.rows).where({ kid }).where(table.at, '>=', hour);
  return rows.where(table.at, '<', hour + HOUR);
}

/** A batch with a time before the end of the hour may commit a little later. */
const LATE_MS = 2 * MINUTE;

/** The oldest past hour that has rows and is not anchored. */
async function nextHour(database: Database, table: AnchoredTable, kid: string, now: number) {
  const from = await anchoredTo(database.read, table.anchoredTo, kid);
  const rows = database.read(table.rows).where({ kid }).where(table.at, '>=', from);
  const oldest = await cellOf<number>(rows.orderBy(table.at), table.at);
  if (oldest === undefined) return null;
  const hour = floorHour(Number(oldest));
  return hour + HOUR + LATE_MS <= now ? hour : null;
}

const PIECE = 2000;

/** Works in pieces, so that requests are answered in between. */
export async function bodyOf(hour: number, commitments: readonly string[]) {
  let frontier = EMPTY_FRONTIER;
  for (const piece of chunksOf(commitments, PIECE)) {
    frontier = addCommitments(frontier, piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return anchorBody(hour, hour + HOUR, frontier);
}

interface AnchoredLog {
  readonly kid: string;
  /** Without them the entry counts as forged. */
  readonly macs: EntryMacs | undefined;
}

/** @returns false: an erasure came in between */
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
    // An erasure takes this lock too, and must find the hour either anchored or not.
    await lockHead(tx, kid);
    // An erasure before the lock deleted rows that were read: the caller reads again.
    if ((await countOf(rowsOfHour(tx, table, kid, hour))) !== live) return false;
    // Another node anchored this hour.
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

/** Anchors each past hour, and returns how many. Off the hot path; safe on many nodes. */
async function anchorHours(database: Database, table: AnchoredTable, log: AnchoredLog, now: number) {
  let count = 0;
  for (;;) {
    const hour = await nextHour(database, table, log.kid, now);
    if (hour === null) return count;
    if (await anchorHour(database, table, log, hour, now)) count += 1;
  }
}

interface Row extends AuditFields {
  readonly seq: number;
  readonly salt: string;
  readonly commitment: string;
}

async function* changedRows({ read }: Database, kid: string, hour: number): AsyncGenerator<string> {
  for await (const rows of pagesOf<Row>(rowsOfHour(read, AUDIT, kid, hour), ['seq'], PIECE))
    for (const row of rows)
      if (commitAudit(Buffer.from(row.salt, 'base64url'), kid, auditText(row)) !== row.commitment)
        yield `audit row ${row.seq} was changed`;
}

export const AUDIT: AnchoredTable = {
  type: 'audit.sealed',
  rows: 'audit_log',
  at: 'at',
  anchors: 'audit_seals',
  anchoredTo: 'audit_sealed_to',
  noun: 'audit rows',
  read: async (db, kid, hour) => {
    const commitments: string[] = await rowsOfHour(db, AUDIT, kid, hour).orderBy('seq').pluck('commitment');
    return { commitments, live: commitments.length };
  },
  changed: changedRows,
};

export function anchorAudit(database: Database, kid: string, now: number, macs?: EntryMacs): Promise<number> {
  return anchorHours(database, AUDIT, { kid, macs }, now);
}

/** Verdicts: an erased one leaves its commitment at its position, so that the root still holds. */

interface Live {
  readonly request_id: string;
  readonly commitment: string;
}

const SLICE = 5000;

/** All verdicts of an hour in short reads by time; verdicts of one moment are never separated. */
async function liveOf(db: Knex, kid: string, hour: number): Promise<Live[]> {
  const live: Live[] = [];
  for (let from = hour; from < hour + HOUR; ) {
    const rest = (): Knex.QueryBuilder => rowsOfHour(db, VERDICTS, kid, hour).where('decided_at', '>=', from);
    const edge = await cellOf<number>(rest().orderBy('decided_at').offset(SLICE), 'decided_at');
    const upto = edge ?? hour + HOUR;
    const slice = (await rest().where('decided_at', '<=', upto).select('request_id', 'commitment')) as Live[];
    for (const row of slice) live.push(row);
    from = upto + 1;
  }
  // Ids are nearly in the order of time, so the sort has little to do.
  return live.sort((a, b) => (a.request_id < b.request_id ? -1 : 1));
}

async function readVerdicts(db: Knex, kid: string, hour: number): Promise<HourRead> {
  const rows = await liveOf(db, kid, hour);
  const commitments = rows.map(({ commitment }) => commitment);
  const erased = await db('erased_verdicts')
    .where({ kid, hour })
    .orderBy('position')
    .select<{ position: number; commitment: string }[]>('position', 'commitment');
  // In ascending order, each is inserted after all positions before it are filled.
  for (const { position, commitment } of erased) commitments.splice(position, 0, commitment);
  return { commitments, live: rows.length };
}

interface DecisionRow extends Live {
  readonly verdict: string;
  readonly salt: string;
}

async function* changedVerdicts({ read }: Database, kid: string, hour: number): AsyncGenerator<string> {
  const ofHour = rowsOfHour(read, VERDICTS, kid, hour);
  for await (const rows of pagesOf<DecisionRow>(ofHour, ['request_id'], PIECE)) {
    for (const { request_id: id, verdict, salt, commitment } of rows)
      if (commitVerdict(Buffer.from(salt, 'base64url'), kid, id, verdict) !== commitment)
        yield `verdict ${id} was changed`;
  }
}

export const VERDICTS: AnchoredTable = {
  type: 'verdicts.sealed',
  rows: 'decisions',
  at: 'decided_at',
  anchors: 'verdict_seals',
  anchoredTo: 'verdicts_sealed_to',
  noun: 'verdicts',
  read: readVerdicts,
  changed: changedVerdicts,
};

/** The oldest whole hour of verdicts that is not anchored. */
export function unanchoredSince(database: Database, kid: string, now: number): Promise<number | null> {
  return nextHour(database, VERDICTS, kid, now);
}

export function anchorVerdicts(
  database: Database,
  kid: string,
  now: number,
  macs?: EntryMacs,
): Promise<number> {
  return anchorHours(database, VERDICTS, { kid, macs }, now);
}

export interface ErasedVerdict {
  readonly request_id: string;
  readonly decided_at: number;
  readonly commitment: string;
}

const erasedPositions = async (db: Knex, kid: string, hour: number): Promise<number[]> =>
  db('erased_verdicts').where({ kid, hour }).orderBy('position').pluck('position');

/** Null: the hour is not anchored. */
async function anchoredCount(db: Knex, kid: string, hour: number): Promise<number | null> {
  return (await cellOf<number>(db('verdict_seals').where({ kid, hour }), 'count')) ?? null;
}

type PlacesOfHour = ReadonlyMap<string, number>;

/**
 * Places of verdicts within their hours, in the order of anchoring. No erasure moves a place, so each hour is
 * read once, if possible without a lock.
 */
export type AnchoredPlaces = ReturnType<typeof createAnchoredPlaces>;

/** @param requested the verdicts whose places are needed: an hour may have a million */
export function createAnchoredPlaces(kid: string, requested: { has(requestId: string): boolean }) {
  const placesByHour = new Map<number, PlacesOfHour>();

  /** One pass over the existing rows and the positions of erased ones, both in order. */
  async function read(db: Knex, hour: number) {
    const places = new Map<string, number>();
    const live = await liveOf(db, kid, hour);
    const erasedAt = await erasedPositions(db, kid, hour);
    let place = 0;
    let next = 0;
    for (const { request_id: id } of live) {
      for (; erasedAt[next] === place; next += 1) place += 1;
      if (requested.has(id)) places.set(id, place);
      place += 1;
    }
    return { places, count: live.length + erasedAt.length };
  }

  return {
    /** Reads the anchored hours among these, without a lock. */
    async prepare(db: Knex, hours: Iterable<number>) {
      for (const hour of hours) {
        const anchored = placesByHour.has(hour) ? null : await anchoredCount(db, kid, hour);
        if (anchored === null) continue;
        const { places, count } = await read(db, hour);
        // If the counts differ, an erasure came in between: the hour is read again under the lock.
        if (count === anchored) placesByHour.set(hour, places);
      }
    },
    /** Null: the hour is not anchored. The caller has locked the head of the log. */
    async of(tx: Knex.Transaction, hour: number) {
      const found = placesByHour.get(hour);
      if (found) return found;
      if ((await anchoredCount(tx, kid, hour)) === null) return null;
      const { places } = await read(tx, hour);
      placesByHour.set(hour, places);
      return places;
    },
  };
}

export const hourOfVerdict = ({ decided_at: at }: Pick<ErasedVerdict, 'decided_at'>): number =>
  floorHour(Number(at));

/**
 * Keeps the commitments of verdicts that are about to be deleted, at their places in their anchored hours;
 * hours that are not anchored keep nothing. The caller has locked the head of the log and not yet deleted the
 * verdicts.
 */
export async function keepCommitments(
  tx: Knex.Transaction,
  kid: string,
  verdicts: readonly ErasedVerdict[],
  places: AnchoredPlaces,
): Promise<void> {
  const byHour = new Map<number, PlacesOfHour | null>();
  for (const hour of new Set(verdicts.map(hourOfVerdict))) byHour.set(hour, await places.of(tx, hour));
  const rows = verdicts.flatMap((verdict): Bindings[] => {
    const hour = hourOfVerdict(verdict);
    const place = byHour.get(hour)?.get(verdict.request_id);
    return place === undefined ? [] : [[kid, hour, place, verdict.commitment]];
  });
  await insertMany(tx, 'INSERT INTO erased_verdicts (kid, hour, position, commitment)', rows);
}
