import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { tryLockTenant } from '../db/meta-store.ts';
import { type Clock, DAY, HOUR } from '../lib/clock.ts';

/**
 * Counts how often each seal key generation decrypts a bundle, and how often the
 * banner is requested. An operator sees from it when a generation can be destroyed.
 */

/**
 * The kinds of visits that are counted. `all` are requests for the banner, and `gpc`
 * those with Global Privacy Control: no other table knows of a visit that the signal
 * refused. `judged` are bundles, `workerless` those without a worker's answers.
 */
export type Visit = 'all' | 'gpc' | 'judged' | 'workerless';

interface Use {
  readonly kid: string;
  /** The creation time of the tenant: a later tenant with the same kid is another one. */
  readonly since: number;
  readonly count: number;
  readonly lastAt: number;
}

interface KeyUse extends Use {
  readonly of: 'key';
  /** The generation that decrypted bundles. */
  readonly generation: number;
}

interface VisitUse extends Use {
  readonly of: 'visit' | 'agent';
  /** The kind of visit, or of request by an agent. */
  readonly visit: string;
}

type CountedUse = KeyUse | VisitUse;

/** Tells the counts of one tenant apart. */
const nameOfUse = (use: CountedUse): string =>
  `${use.kid}|${use.of === 'key' ? use.generation : `${use.of} ${use.visit}`}`;

const KEEP_DAYS = 60;

export async function addKeyTraffic(database: Database, uses: readonly CountedUse[]): Promise<void> {
  if (uses.length === 0) return;
  // All nodes write at the same minute and in the same order, so that they do not deadlock on PostgreSQL.
  const sorted = [...uses].sort((a, b) => (nameOfUse(a) < nameOfUse(b) ? -1 : 1));
  await database.transaction(async (tx) => {
    for (const use of sorted) {
      if (!(await tryLockTenant(tx, use.kid, use.since))) continue;
      await (use.of === 'key' ? addBundles(tx, use) : addVisits(tx, use));
    }
  });
}

async function addVisits(
  tx: Knex.Transaction,
  { of: kind, kid, visit, count, lastAt }: VisitUse,
): Promise<void> {
  await tx('tallies')
    .insert({ kid, kind, hour: Math.floor(lastAt / HOUR) * HOUR, name: visit, n: count })
    .onConflict(['kid', 'kind', 'hour', 'name'])
    .merge({ n: tx.raw('tallies.n + ?', [count]) });
}

async function addBundles(tx: Knex.Transaction, { kid, generation, count, lastAt }: KeyUse): Promise<void> {
  await tx('key_traffic')
    .insert({ kid, generation, day: Math.floor(lastAt / DAY), bundles: count, last_at: lastAt })
    .onConflict(['kid', 'generation', 'day'])
    .merge({ bundles: tx.raw('key_traffic.bundles + ?', [count]), last_at: lastAt });
}

/** @returns the sum of each generation since that day, and the time of its last use */
export async function readKeyTraffic(database: Database, kid: string, since: number) {
  const rows = (await database
    .read('key_traffic')
    .where({ kid })
    .where('day', '>=', Math.floor(since / DAY))
    .groupBy('generation')
    .select('generation')
    .sum({ bundles: 'bundles' })
    .max({ last_at: 'last_at' })) as { generation: number; bundles: number; last_at: number }[];
  return rows.map(({ generation, bundles, last_at: lastAt }) => {
    return { generation, bundles: Number(bundles), lastAt: Number(lastAt) };
  });
}

export async function purgeKeyTraffic(database: Database, now: number): Promise<void> {
  const oldest = Math.floor(now / DAY) - KEEP_DAYS;
  await database.transaction((tx) => tx('key_traffic').where('day', '<', oldest).delete());
}

/** Called with the generation that decrypted a bundle. */
export type OnOpened = (tenant: { readonly kid: string; readonly since: number }, generation: number) => void;

export type NoteVisit = (tenant: Parameters<OnOpened>[0], ...visits: readonly Visit[]) => void;

export interface KeyUseCounter {
  readonly note: OnOpened;
  /** Counts a request for the banner, or a judged bundle. */
  readonly noteVisit: NoteVisit;
  /** Counts a request at the door by the name of its kind. */
  readonly noteAgent: (tenant: Parameters<OnOpened>[0], kind: string) => void;
  /** Writes the sums. If that fails, the next flush writes them. @throws {Unavailable} */
  readonly flush: () => Promise<void>;
}

type Counts = Map<string, CountedUse>;

/** A later tenant with the same kid has separate counts. */
const counterKey = (use: CountedUse): string => `${use.since}|${nameOfUse(use)}`;

/**
 * Counts in memory and writes the sums when housekeeping calls `flush`, so that no request waits for a write.
 */
export function createKeyUseCounter(database: Database, clock: Clock): KeyUseCounter {
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
  const noteVisit: NoteVisit = ({ kid, since }, ...visits) => {
    for (const visit of visits) addUse({ of: 'visit', kid, since, visit, count: 1, lastAt: clock() });
  };
  return {
    note,
    noteVisit,
    noteAgent: ({ kid, since }, visit) =>
      addUse({ of: 'agent', kid, since, visit, count: 1, lastAt: clock() }),
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
