import type { Database } from '../db/engine.ts';
import { readMeta, writeMeta } from '../db/meta-store.ts';

/** GPD_EPOCH_DAYS of the last server start: a change gives every device a new visitorId. */

const EPOCH_LENGTH = 'epoch-length';

export interface EpochLength {
  readonly days: number;
  /** The number of days before the last change; null if it never changed. */
  readonly before: number | null;
  readonly changedAt: number | null;
}

/** @returns null if no server has stored it yet */
export async function readEpochLength(database: Database): Promise<EpochLength | null> {
  const value = await readMeta(database, EPOCH_LENGTH);
  return value === null ? null : (JSON.parse(value) as EpochLength);
}

/** Called at each start. @returns the previous number of days if it has changed */
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
