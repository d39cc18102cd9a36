import type { Database } from '../db/engine.ts';
import type { Clock } from '../lib/clock.ts';
import { addKeyTraffic, type CountedUse, nameOfUse, type Visit } from './seal-keys.ts';

/**
 * Counts how often each seal key generation decrypts a bundle, and how often the
 * banner is requested. An operator sees from it when a generation can be destroyed.
 */

/** Called with the generation that decrypted a bundle. */
export type OnOpened = (tenant: { readonly kid: string; readonly since: number }, generation: number) => void;

export type NoteVisit = (tenant: Parameters<OnOpened>[0], ...visits: readonly Visit[]) => void;

export type KeyUseCounter = ReturnType<typeof createKeyUseCounter>;

type Counts = Map<string, CountedUse>;

/** A later tenant with the same kid has separate counts. */
const counterKey = (use: CountedUse): string => `${use.since}|${nameOfUse(use)}`;

/**
 * Counts in memory and writes the sums when housekeeping calls `flush`, so that no request waits for a write.
 */
export function createKeyUseCounter(database: Database, clock: Clock) {
  let counts: Counts = new Map();
  function addUse(use: CountedUse): void {
    const { count = 0, lastAt = 0 } = counts.get(counterKey(use)) ?? {};
    counts.set(counterKey(use), {
      ...use,
      count: count + use.count,
      lastAt: Math.max(lastAt, use.lastAt),
    });
  }
  const note: OnOpened = ({ kid, since }, generation) =>
    addUse({ of: 'key', kid, since, generation, count: 1, lastAt: clock() });
  /** Counts a request for the banner, or a judged bundle. */
  const noteVisit: NoteVisit = ({ kid, since }, ...visits) => {
    for (const visit of visits) addUse({ of: 'visit', kid, since, visit, count: 1, lastAt: clock() });
  };
  return {
    note,
    noteVisit,
    /** If the write fails, the counts are written by the next flush. */
    flush: async () => {
      const uses = [...counts.values()];
      counts = new Map();
      try {
        await addKeyTraffic(database, uses);
      } catch (error) {
        for (const use of uses) addUse(use);
        throw error;
      }
    },
  };
}
