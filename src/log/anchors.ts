import type { Knex } from 'knex';
import { type AuditFields, auditText } from '../audit/audit.ts';
import { type AnchoredTo, anchoredTo } from '../audit/store.ts';
import type { Database } from '../db/db.ts';
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
import { appendOne, type EntryMacs, lockHead } from './entries.ts';
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

function rowsOfHour(db: Knex, table: AnchoredTable, kid: string, hour: number): Knex.QueryBuilder {
  const rows = db(table.rows).where({ kid }).where(table.at, '>=', hour);
  return rows.where(table.at, '<', hour + HOUR);
}

/** A batch that was stamped before the hour ended may commit a little later. */
const LATE_MS = 2 * MINUTE;

/** The oldest hour that is over, has rows and is not anchored. */
async function nextHour(database: Database, table: AnchoredTable, kid: string, now: number) {
  const from = await anchoredTo(database.read, table.anchoredTo, kid);
  const rows = database.read(table.rows).where({ kid }).where(table.at, '>=', from);
  const oldest = await cellOf<number>(rows.orderBy(table.at), table.at);
  if (oldest === undefined) return null;
  const hour = floorHour(Number(oldest));
  return hour + HOUR + LATE_MS <= now ? hour : null;
}

/** Rows of a short read. */
const PIECE = 2000;

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
async function anchorHours(database: Database, table: AnchoredTable, log: AnchoredLog, now: number) {
  let count = 0;
  for (;;) {
    const hour = await nextHour(database, table, log.kid, now);
    if (hour === null) return count;
    if (await anchorHour(database, table, log, hour, now)) count += 1;
  }
}

/** The audit log, anchored by the hour. */

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

/** Verdicts, anchored by the hour. An erased one leaves its commitment at its place, and the root still holds. */

interface Live {
  readonly request_id: string;
  readonly commitment: string;
}

const SLICE = 5000;

/** All of an hour by time, a short read each; those of one moment are never cut apart. */
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
  // Ids are made in the order of time, near enough for the sort to have little to do.
  return live.sort((a, b) => (a.request_id < b.request_id ? -1 : 1));
}

async function readVerdicts(db: Knex, kid: string, hour: number): Promise<HourRead> {
  const rows = await liveOf(db, kid, hour);
  const commitments = rows.map(({ commitment }) => commitment);
  const erased = await db('erased_verdicts')
    .where({ kid, hour })
    .orderBy('position')
    .select<{ position: number; commitment: string }[]>('position', 'commitment');
  // In ascending order each lands at its own place, the ones before it being there already.
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

const takenOf = async (db: Knex, kid: string, hour: number): Promise<number[]> =>
  db('erased_verdicts').where({ kid, hour }).orderBy('position').pluck('position');

/** Null: the hour is not anchored. */
async function anchoredCount(db: Knex, kid: string, hour: number): Promise<number | null> {
  return (await cellOf<number>(db('verdict_seals').where({ kid, hour }), 'count')) ?? null;
}

type PlacesOfHour = ReadonlyMap<string, number>;

/**
 * Places of verdicts in their hours, in the order in which they were anchored. No erasure ever moves one, so that each hour is
 * read once, and outside the writer when there is time for it.
 */
export type AnchoredPlaces = ReturnType<typeof makeAnchoredPlaces>;

/** @param wanted the verdicts that are asked about: an hour may have a million */
export function makeAnchoredPlaces(kid: string, wanted: { has(requestId: string): boolean }) {
  const known = new Map<number, PlacesOfHour>();

  /** One pass over those that are there and the places that are taken, both in their order. */
  async function read(db: Knex, hour: number) {
    const places = new Map<string, number>();
    const live = await liveOf(db, kid, hour);
    const taken = await takenOf(db, kid, hour);
    let place = 0;
    let next = 0;
    for (const { request_id: id } of live) {
      for (; taken[next] === place; next += 1) place += 1;
      if (wanted.has(id)) places.set(id, place);
      place += 1;
    }
    return { places, count: live.length + taken.length };
  }

  return {
    /** Reads the anchored ones of these hours, without a lock. */
    async prepare(db: Knex, hours: Iterable<number>) {
      for (const hour of hours) {
        const anchored = known.has(hour) ? null : await anchoredCount(db, kid, hour);
        if (anchored === null) continue;
        const { places, count } = await read(db, hour);
        // Else an erasure came in between: read again under the lock.
        if (count === anchored) known.set(hour, places);
      }
    },
    /** Null: the hour is not anchored. The head of the log has to be locked. */
    async of(tx: Knex.Transaction, hour: number) {
      const found = known.get(hour);
      if (found) return found;
      if ((await anchoredCount(tx, kid, hour)) === null) return null;
      const { places } = await read(tx, hour);
      known.set(hour, places);
      return places;
    },
  };
}

export const hourOfVerdict = ({ decided_at: at }: Pick<ErasedVerdict, 'decided_at'>): number =>
  floorHour(Number(at));

/**
 * Leaves the commitments of verdicts that are about to be deleted at their places in their anchored hours; of an hour that
 * is not anchored nothing is left. The head of the log has to be locked, the verdicts have to be there still.
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
