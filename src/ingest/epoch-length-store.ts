import type { Database } from '../db/db.ts';
import { readMeta, writeMeta } from '../db/meta-store.ts';
import { DAY } from '../lib/clock.ts';

/** GPD_EPOCH_DAYS as a server last started with it: rows that an older release wrote hold the number of their epoch alone. */

const EPOCH_LENGTH = 'epoch-length';

export interface EpochLength {
  readonly days: number;
  /** What it was before the last change; null: it never changed. */
  readonly before: number | null;
  readonly changedAt: number | null;
}

/** Null: no server has written it down yet. */
export async function readEpochLength(database: Database): Promise<EpochLength | null> {
  const value = await readMeta(database, EPOCH_LENGTH);
  return value === null ? null : (JSON.parse(value) as EpochLength);
}

const STEP = 2000;

/** Gives every visitorId without one the end of its epoch, in the order of the key and in short steps. */
async function fillEnds(database: Database, days: number): Promise<void> {
  const key = '(kid, visitor_id)';
  for (let after: readonly [string, string] = ['', '']; ; ) {
    const last = (await database
      .read('visitor_index')
      .whereRaw(`${key} > (?, ?)`, [...after])
      .orderBy(['kid', 'visitor_id'])
      .offset(STEP - 1)
      .limit(1)
      .first('kid', 'visitor_id')) as { kid: string; visitor_id: string } | undefined;
    const [from, upto] = [after, last && ([last.kid, last.visitor_id] as const)];
    await database.transaction((tx) => {
      const rows = tx('visitor_index')
        .whereNull('ends_at')
        .whereRaw(`${key} > (?, ?)`, [...from]);
      if (upto) rows.whereRaw(`${key} <= (?, ?)`, [...upto]);
      // An epoch is an integer of 32 bits.
      const end = tx.raw('(CAST(epoch AS bigint) + 1) * CAST(? AS bigint)', [days * DAY]);
      return rows.update({ ends_at: end });
    });
    if (!upto) return;
    after = upto;
  }
}

/**
 * To be called at each start. The first of this release, and each with another setting, fills in what is missing by the length
 * that held before.
 * @returns the number of days that held before, when it was another
 */
export async function noteEpochLength(database: Database, days: number, now: number): Promise<number | null> {
  const known = await readEpochLength(database);
  if (known?.days === days) return null;
  await fillEnds(database, known?.days ?? days);
  const length: EpochLength = { days, before: known?.days ?? null, changedAt: known ? now : null };
  await database.transaction((tx) => writeMeta(tx, EPOCH_LENGTH, JSON.stringify(length)));
  return known?.days ?? null;
}
