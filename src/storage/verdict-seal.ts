import type { Knex } from 'knex';
import { commitVerdict } from '../ledger/commitment.ts';
import { HOUR } from '../lib/clock.ts';
import type { Database } from './db.ts';
import { checkHours, type HourRead, nextHour, type SealedTable, sealHours } from './hourly-seal.ts';
import { type Bindings, insertMany } from './sql.ts';

/** Verdicts, sealed by the hour. An erased one leaves its commitment at its place, and the root still holds. */

function hourOf(db: Knex, kid: string, hour: number): Knex.QueryBuilder {
  return db('decisions')
    .where({ kid })
    .where('decided_at', '>=', hour)
    .where('decided_at', '<', hour + HOUR);
}

interface Live {
  readonly request_id: string;
  readonly commitment: string;
}

const SLICE = 5000;

/** All of an hour by time, a short read each; those of one moment are never cut apart. */
async function liveOf(db: Knex, kid: string, hour: number): Promise<Live[]> {
  const live: Live[] = [];
  for (let from = hour; from < hour + HOUR; ) {
    const rest = (): Knex.QueryBuilder => hourOf(db, kid, hour).where('decided_at', '>=', from);
    const edge = (await rest().orderBy('decided_at').offset(SLICE).limit(1).first('decided_at')) as
      | { decided_at: number }
      | undefined;
    const upto = edge ? Number(edge.decided_at) : hour + HOUR;
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
  const erased = (await db('erased_verdicts')
    .where({ kid, hour })
    .orderBy('position')
    .select('position', 'commitment')) as { position: number; commitment: string }[];
  // In ascending order each lands at its own place, the ones before it being there already.
  for (const { position, commitment } of erased) commitments.splice(position, 0, commitment);
  return { commitments, live: rows.length };
}

const VERDICTS: SealedTable = {
  type: 'verdicts.sealed',
  rows: 'decisions',
  at: 'decided_at',
  seals: 'verdict_seals',
  sealedTo: 'verdicts_sealed_to',
  noun: 'verdicts',
  read: readVerdicts,
};

/** The oldest whole hour of verdicts that is not sealed. */
export function unsealedSince(database: Database, kid: string, now: number): Promise<number | null> {
  return nextHour(database, VERDICTS, kid, now);
}

export function sealVerdicts(database: Database, kid: string, now: number): Promise<number> {
  return sealHours(database, VERDICTS, kid, now);
}

export interface ErasedVerdict {
  readonly request_id: string;
  readonly decided_at: number;
  readonly commitment: string;
}

/**
 * Leaves the commitments of verdicts that are about to be deleted at their places in their sealed hours; of an hour that
 * is not sealed nothing is left. The head of the log has to be locked, the verdicts have to be there still.
 */
export async function keepCommitments(
  tx: Knex.Transaction,
  kid: string,
  verdicts: readonly ErasedVerdict[],
): Promise<void> {
  const byHour = new Map<number, ErasedVerdict[]>();
  for (const verdict of verdicts) {
    const hour = Math.floor(Number(verdict.decided_at) / HOUR) * HOUR;
    const known = byHour.get(hour);
    if (known) known.push(verdict);
    else byHour.set(hour, [verdict]);
  }
  for (const [hour, erased] of byHour) {
    if (!(await tx('verdict_seals').where({ kid, hour }).first('hour'))) continue;
    const taken = (await tx('erased_verdicts')
      .where({ kid, hour })
      .orderBy('position')
      .pluck('position')) as number[];
    const places = await placesOf(tx, kid, hour, erased);
    const rows = erased.map(({ request_id, commitment }): Bindings => {
      let position = places.get(request_id) ?? 0;
      for (const place of taken) if (place <= position) position += 1;
      return [kid, hour, position, commitment];
    });
    await insertMany(tx, 'INSERT INTO erased_verdicts (kid, hour, position, commitment)', rows);
  }
}

/** Past so many the whole hour is read instead of naming each. */
const MAX_NAMED = 500;

/** The places of verdicts among those that are there, in one pass over the hour. */
async function placesOf(
  tx: Knex.Transaction,
  kid: string,
  hour: number,
  erased: readonly ErasedVerdict[],
): Promise<ReadonlyMap<string, number>> {
  const ranked = hourOf(tx, kid, hour)
    .select('request_id', tx.raw('ROW_NUMBER() OVER (ORDER BY request_id) - 1 AS place'))
    .as('ranked');
  const query = tx.from(ranked).select('request_id', 'place');
  if (erased.length <= MAX_NAMED)
    query.whereIn(
      'request_id',
      erased.map((verdict) => verdict.request_id),
    );
  const rows = (await query) as { request_id: string; place: number }[];
  return new Map(rows.map((row) => [row.request_id, Number(row.place)]));
}

interface DecisionRow {
  readonly request_id: string;
  readonly verdict: string;
  readonly salt: string;
  readonly commitment: string;
}

async function changedVerdicts(database: Database, kid: string, hour: number): Promise<string[]> {
  const columns = ['request_id', 'verdict', 'salt', 'commitment'] as const;
  const rows = (await hourOf(database.read, kid, hour).select(...columns)) as DecisionRow[];
  return rows
    .filter(({ request_id, verdict, salt, commitment }) => {
      return commitVerdict(Buffer.from(salt, 'base64url'), kid, request_id, verdict) !== commitment;
    })
    .map((row) => `verdict ${row.request_id} was changed`);
}

/** Holds every sealed hour against the verdicts that are there, and every verdict against its commitment. */
export async function checkSeals(database: Database, kid: string): Promise<readonly string[]> {
  const problems = [...(await checkHours(database, VERDICTS, kid))];
  const hours = (await database
    .read('verdict_seals')
    .where({ kid })
    .orderBy('hour')
    .pluck('hour')) as number[];
  for (const hour of hours) problems.push(...(await changedVerdicts(database, kid, Number(hour))));
  return problems;
}
