import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { type Bindings, cellOf, insertMany, pagesOf } from '../db/sql.ts';
import { commitVerdict } from '../ledger/commitment.ts';
import { HOUR } from '../lib/clock.ts';
import type { EntryMacs } from './entry-check.ts';
import { floorHour } from './fold.ts';
import {
  type AnchoredTable,
  anchorHours,
  type HourRead,
  nextHour,
  PIECE,
  rowsOfHour,
} from './hourly-anchor-store.ts';

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
