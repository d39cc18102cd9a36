import type { Database } from '../db/db.ts';
import { writeMeta } from '../db/meta-store.ts';
import { MINUTE } from '../lib/clock.ts';

/**
 * Which GPD_MAX_CLOCK_SKEW servers judged by, and until when. A nonce that was claimed under a smaller one was forgotten
 * sooner, and its bundle may still be fresh under a larger one.
 */

const PREFIX = 'clock-skew:';
/** A server notes its own once a minute. */
const NOTED_LATE_MS = 2 * MINUTE;

export async function noteSkew(database: Database, skewMs: number, now: number): Promise<void> {
  await database.transaction((tx) => writeMeta(tx, `${PREFIX}${skewMs}`, String(now)));
}

/** The smallest skew by which a bundle that is fresh now may have been claimed. */
export async function leastSkew(database: Database, skewMs: number, now: number): Promise<number> {
  const rows = (await database
    .read('meta')
    // Not by order, which is the collation's.
    .whereRaw('substr(name, 1, ?) = ?', [PREFIX.length, PREFIX])
    .select('name', 'value')) as { name: string; value: string }[];
  const others = rows
    .map(({ name, value }) => ({ ms: Number(name.slice(PREFIX.length)), usedAt: Number(value) }))
    // Claimed at `usedAt` with a clientTs of at most `usedAt + ms`, it is fresh until `skewMs` later.
    .filter(({ ms, usedAt }) => now <= usedAt + ms + skewMs + NOTED_LATE_MS);
  return Math.min(skewMs, ...others.map(({ ms }) => ms));
}
