import type { Clock } from '../lib/clock.ts';
import type { Database } from '../storage/db.ts';
import { addKeyTraffic, type KeyUse } from '../storage/key-traffic.ts';

/** Counts in memory which generation opened a bundle, and writes the sums now and then: nothing on the hot path waits. */
export interface KeyUseCounter {
  readonly note: (kid: string, generation: number) => void;
  /** What could not be written is counted with the next flush. */
  readonly flush: () => Promise<void>;
}

export function makeKeyUseCounter(database: Database, clock: Clock): KeyUseCounter {
  let counts = new Map<string, { kid: string; generation: number; bundles: number; lastAt: number }>();
  return {
    note(kid, generation) {
      const key = `${kid}|${generation}`;
      const found = counts.get(key);
      if (found) {
        found.bundles += 1;
        found.lastAt = clock();
      } else counts.set(key, { kid, generation, bundles: 1, lastAt: clock() });
    },
    async flush() {
      const taken: readonly KeyUse[] = [...counts.values()];
      counts = new Map();
      try {
        await addKeyTraffic(database, taken);
      } catch (error) {
        for (const { kid, generation, bundles, lastAt } of taken) {
          const key = `${kid}|${generation}`;
          const now = counts.get(key);
          counts.set(key, {
            kid,
            generation,
            bundles: bundles + (now?.bundles ?? 0),
            lastAt: now?.lastAt ?? lastAt,
          });
        }
        throw error;
      }
    },
  };
}
