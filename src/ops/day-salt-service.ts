import type { Database } from '../db/engine.ts';
import { type Clock, DAY } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { renewDaySalts } from './day-salt-store.ts';

/** Random, and deleted with its day: neither a backup nor the master key brings an address back from its hash. */

const SALT_BYTES = 32;

export interface DaySalts {
  /** A salt of this process alone where the database has none for this day. */
  readonly saltOf: (day: number) => string;
  /** Follows the day; tomorrow's salt is made before midnight. */
  readonly renew: () => Promise<void>;
}

export function createDaySalts(database: Database, clock: Clock, random: Random): DaySalts {
  const createSalt = (): string => random(SALT_BYTES).toString('base64url');
  let salts = new Map<number, string>();
  return {
    saltOf(day) {
      const salt = salts.get(day) ?? createSalt();
      salts.set(day, salt);
      return salt;
    },
    async renew() {
      const today = Math.floor(clock() / DAY);
      salts = new Map(await renewDaySalts(database, [today, today + 1], createSalt));
    },
  };
}
