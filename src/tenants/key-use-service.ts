import type { Database } from '../db/engine.ts';
import type { Clock } from '../lib/clock.ts';
import { addKeyTraffic, type KeyUse, type Visit } from './seal-keys.ts';

/** Told which generation opened a bundle. */
export type OnOpened = (tenant: { readonly kid: string; readonly since: number }, generation: number) => void;

export type NoteVisit = (tenant: Parameters<OnOpened>[0], ...visits: readonly Visit[]) => void;

export type KeyUseCounter = ReturnType<typeof createKeyUseCounter>;

type Counts = Map<string, { -readonly [Name in keyof KeyUse]: KeyUse[Name] }>;

const idOf = ({ kid, since, generation, visit }: KeyUse): string => `${kid}|${since}|${visit ?? generation}`;

/** Counts in memory which generation opened a bundle, and writes the sums now and then: nothing on the hot path waits. */
export function createKeyUseCounter(database: Database, clock: Clock) {
  let counts: Counts = new Map();
  function add(use: KeyUse): void {
    const found = counts.get(idOf(use));
    if (!found) counts.set(idOf(use), { ...use });
    else {
      found.bundles += use.bundles;
      found.lastAt = Math.max(found.lastAt, use.lastAt);
    }
  }
  const note: OnOpened = ({ kid, since }, generation) =>
    add({ kid, since, generation, bundles: 1, lastAt: clock() });
  /** The banner was asked for, or a bundle was judged. */
  const noteVisit: NoteVisit = ({ kid, since }, ...visits) => {
    for (const visit of visits) add({ kid, since, generation: 0, bundles: 1, lastAt: clock(), visit });
  };
  return {
    note,
    noteVisit,
    /** What could not be written is counted with the next flush. */
    flush: async () => {
      const taken = [...counts.values()];
      counts = new Map();
      try {
        await addKeyTraffic(database, taken);
      } catch (error) {
        for (const use of taken) add(use);
        throw error;
      }
    },
  };
}
