import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { createGroup } from '../db/group-commit.ts';
import { purge } from '../db/purge.ts';
import { type Bindings, insertMany } from '../db/sql.ts';
import type { SharedCounter } from '../http/limiter.ts';
import { MINUTE } from '../lib/clock.ts';
import type { Job } from '../lib/jobs.ts';
import type { Installation } from '../tenants/directory.ts';

/** Counts requests for rate limits in the table `rate_counters`, which all nodes share. */

type Hit = Parameters<SharedCounter>[0];

type HitRow = Omit<Required<Hit>, 'windowEnds'> & { readonly window_ends: number };

const idOf = ({ bucket, client }: Omit<Hit, 'windowEnds'>, windowEnds: number): string =>
  `${bucket}|${client}|${windowEnds}`;

async function countBatch(database: Database, batch: readonly Hit[]): Promise<number[]> {
  const counts = new Map<string, Required<Hit>>();
  for (const hit of batch) {
    const id = idOf(hit, hit.windowEnds);
    counts.set(id, { ...hit, hits: (counts.get(id)?.hits ?? 0) + (hit.hits ?? 1) });
  }
  const ids = [...counts.keys()].sort();
  const rows = ids.map((id): Bindings => {
    const { bucket, client, windowEnds, hits } = counts.get(id) as Required<Hit>;
    return [bucket, client, windowEnds, hits];
  });
  const add = (db: Knex) =>
    insertMany<HitRow>(
      db,
      'INSERT INTO rate_counters (bucket, client, window_ends, hits)',
      rows,
      `ON CONFLICT (bucket, client, window_ends) DO UPDATE SET hits = rate_counters.hits + excluded.hits
       RETURNING bucket, client, window_ends, hits`,
    );
  // A single statement is its own transaction on PostgreSQL: one round trip. The table is unlogged, so it
  // waits for no disk.
  const totals = await (database.kind === 'postgres' ? add(database.read) : database.transaction(add));
  const remaining = new Map(totals.map((row) => [idOf(row, row.window_ends), row.hits]));
  // Each hit gets the count at its place in the batch, so that a burst over the limit loses only its excess.
  const lastFirst = batch.toReversed().map((hit) => {
    const id = idOf(hit, hit.windowEnds);
    const count = remaining.get(id) ?? 0;
    remaining.set(id, count - (hit.hits ?? 1));
    return count;
  });
  return lastFirst.reverse();
}

/** Requests that arrive together share one statement. */
export function createSharedCounter(database: Database): SharedCounter {
  const group = createGroup<Hit, number>({
    name: 'rate',
    run: (batch) => countBatch(database, batch),
    maxBatch: 1000,
    maxWaiting: 20_000,
  });
  return (hit) => group.submit(hit);
}

/** Deletes windows one window after their end. */
export function purgeCounters(database: Database, now: number, windowMs: number): Promise<number> {
  return purge(database, 'rate_counters', ['bucket', 'client', 'window_ends'], (rows) =>
    rows.where('window_ends', '<', now - windowMs),
  );
}

export const rateJobs = ({ database }: Pick<Installation, 'database'>): readonly Job[] => [
  { name: 'purge-rates', every: MINUTE, run: ({ now }) => purgeCounters(database, now, 10 * MINUTE) },
];
