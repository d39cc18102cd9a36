import type { Database } from '../db/engine.ts';
import type { Clock } from '../lib/clock.ts';
import { addKeyTraffic, type KeyUse, type Visit } from './seal-keys.ts';

/**
 * Counts how often each seal key generation decrypts a bundle, and how often the
 * banner is requested. An operator sees from it when a generation can be destroyed.
 */

/** Called with the generation that decrypted a bundle. */
export type OnOpened = (tenant: { readonly kid: string; readonly since: number }, generation: number) => void;

export type NoteVisit = (tenant: Parameters<OnOpened>[0], ...visits: readonly Visit[]) => void;

export type KeyUseCounter = ReturnType<typeof createKeyUseCounter>;

type Counts = Map<string, { -readonly [Name in keyof KeyUse]: KeyUse[Name] }>;

const counterKey = ({ kid, since, generation, visit }: KeyUse): string =>
  `${kid}|${since}|${visit ?? generation}`;

/**
 * Counts in memory and writes the sums when housekeeping calls `flush`, so that no request waits for a write.
 */
export function createKeyUseCounter(database: Database, clock: Clock) {
  let counts: Counts = new Map();
  function addUse(use: KeyUse): void {
    const found = counts.get(counterKey(use));
    if (!found) counts.set(counterKey(use), { ...use });
    else {
      found.bundles += use.bundles;
      found.lastAt = Math.max(found.lastAt, use.lastAt);
    }
  }
  const note: OnOpened = ({ kid, since }, generation) =>
    addUse({ kid, since, generation, bundles: 1, lastAt: clock() });
  /** Counts a request for the banner, or a judged bundle. */
  const noteVisit: NoteVisit = ({ kid, since }, ...visits) => {
    for (const visit of visits) addUse({ kid, since, generation: 0, bundles: 1, lastAt: clock(), visit });
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
