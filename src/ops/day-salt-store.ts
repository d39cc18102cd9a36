import type { Database } from '../db/engine.ts';
import { type Clock, DAY } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';

/**
 * Random salts for hashes of addresses, deleted with their day: then neither a backup nor the master key
 * leads back to an address. All nodes share them, in `meta`.
 */

const SALT_BYTES = 32;

export interface DaySalts {
  /**
   * Uses a salt of this process where the database has none for this day; `renew` stores it, so that hashes
   * of one day stay comparable.
   */
  readonly saltOf: (day: number) => string;
  /** Loads the salts of today and tomorrow, so that midnight needs no database. */
  readonly renew: () => Promise<void>;
}

export function createDaySalts(database: Database, clock: Clock, random: Random): DaySalts {
  let salts = new Map<number, string>();
  function saltOf(day: number): string {
    const salt = salts.get(day) ?? random(SALT_BYTES).toString('base64url');
    salts.set(day, salt);
    return salt;
  }
  return {
    saltOf,
    async renew() {
      const today = Math.floor(clock() / DAY);
      salts = new Map(await renewDaySalts(database, [today, today + 1], saltOf));
    },
  };
}

const PREFIX = 'day-salt ';

/**
 * Keeps the salts of these days, makes those that are missing and deletes all others.
 * @returns base64url by day
 */
function renewDaySalts(
  database: Database,
  days: readonly number[],
  saltOf: (day: number) => string,
): Promise<ReadonlyMap<number, string>> {
  const rows = days.map((day) => ({ name: `${PREFIX}${day}`, value: saltOf(day) }));
  const names = rows.map(({ name }) => name);
  return database.transaction(async (tx) => {
    await tx('meta').where('name', 'like', `${PREFIX}%`).whereNotIn('name', names).delete();
    // If two nodes insert a salt at the same time, the first one stays.
    await tx('meta').insert(rows).onConflict('name').ignore();
    const stored: typeof rows = await tx('meta').whereIn('name', names);
    return new Map(stored.map(({ name, value }) => [Number(name.slice(PREFIX.length)), value]));
  });
}
