import type { Database } from '../db/engine.ts';
import { readMeta, writeMeta } from '../db/meta-store.ts';

/** GPD_EPOCH_DAYS as a server last started with it: a change gives every device a new visitorId. */

const EPOCH_LENGTH = 'epoch-length';

export interface EpochLength {
  readonly days: number;
  /** The days before the last change; null: it never changed. */
  readonly before: number | null;
  readonly changedAt: number | null;
}

/** Null: no server has written it down yet. */
export async function readEpochLength(database: Database): Promise<EpochLength | null> {
  const value = await readMeta(database, EPOCH_LENGTH);
  return value === null ? null : (JSON.parse(value) as EpochLength);
}

/** To be called at each start. @returns the number of days that held before, when it was another */
export async function noteEpochLength(database: Database, days: number, now: number): Promise<number | null> {
  const storedLength = await readEpochLength(database);
  if (storedLength?.days === days) return null;
  const length: EpochLength = {
    days,
    before: storedLength?.days ?? null,
    changedAt: storedLength ? now : null,
  };
  await database.transaction((tx) => writeMeta(tx, EPOCH_LENGTH, JSON.stringify(length)));
  return storedLength?.days ?? null;
}
