import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../../src/config.ts';
import type { Database } from '../../../src/db/engine.ts';
import { createSharedLimiter } from '../../../src/http/limiter.ts';
import { sha256Text } from '../../../src/lib/crypto.ts';
import { createLimiters } from '../../../src/ops/limits-service.ts';
import { createSharedCounter, purgeCounters } from '../../../src/ops/rate-store.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { twoNodes } from '../../support/started.ts';

/** A configuration in which every GPD_RATE_* is off. */
const UNLIMITED = new Proxy({}, { get: () => null }) as Config;

const LIMIT = { points: 5000, seconds: 60 };

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);
const ascending = (a: number, b: number): number => a - b;

export function rateCounterContract(make: MakeDatabase): void {
  describe('shared rate counter', () => {
    const { db, other } = twoNodes(make);

    it('gives each hit on any node a total of its own, one after another and at once', async () => {
      const counters = [createSharedCounter(db.database), createSharedCounter(other)];
      const count = (client: string, i: number) =>
        counters[i % 2]!({ bucket: 'ingest', client, windowEnds: 60_000 });
      const totals: number[] = [];
      for (let i = 0; i < 10; i += 1) totals.push(await count('serial', i));
      expect(totals).toEqual(range(10));
      const burst = await Promise.all(Array.from({ length: 100 }, (_, i) => count('burst', i)));
      expect(burst.sort(ascending)).toEqual(range(100));
    });

    it('lets exactly a large limit through, of which each node counts a thousandth ahead', async () => {
      const requestedHits: number[] = [];
      const limiters = [db.database, other].map((node) => {
        const count = createSharedCounter(node);
        const watched: typeof count = (hit) => {
          requestedHits.push(hit.hits ?? 1);
          return count(hit);
        };
        return createSharedLimiter('consent', LIMIT, watched, () => 1);
      });
      const answers: number[] = [];
      // At once, in groups and one by one: hits that are being counted must not be lost or counted twice.
      for (let turn = 0; turn < 20; turn += 1)
        answers.push(...(await Promise.all(Array.from({ length: 300 }, (_, i) => limiters[i % 2]!('key')))));
      expect(answers.filter((wait) => wait === 0)).toHaveLength(5000);
      expect(answers.filter((wait) => wait === 60)).toHaveLength(1000);
      expect(new Set(requestedHits)).toEqual(new Set([5]));
      expect(requestedHits.length).toBeLessThan(3000);
      // The next window begins at zero.
      const later = createSharedLimiter('consent', LIMIT, createSharedCounter(other), () => 60_001);
      expect(await later('key')).toBe(0);
    });

    it('charges a client once for what it leased, whoever else comes meanwhile', async () => {
      const spec = { points: 100_000, seconds: 60 };
      const limiter = createSharedLimiter('crowd', spec, createSharedCounter(db.database), () => 1);
      expect(await limiter('honest')).toBe(0);
      for (const thousand of range(11)) {
        await Promise.all(range(1000).map((n) => limiter(`stranger ${thousand} ${n}`)));
        expect(await limiter('honest')).toBe(0);
      }
      const charged = await other.read('rate_counters').where({ client: 'honest' }).pluck('hits');
      expect(charged).toEqual([100]);
    });

    it('counts every bucket, client and window apart, in one turn', async () => {
      const count = createSharedCounter(db.database);
      const base = { bucket: 'ingest', client: 'apart', windowEnds: 60_000 };
      const hits = [
        base,
        { ...base, bucket: 'privacy' },
        { ...base, client: 'Apart' },
        { ...base, windowEnds: 120_000 },
      ];
      expect(await Promise.all(hits.map((hit) => count(hit)))).toEqual([1, 1, 1, 1]);
      expect(await count(base)).toBe(2);
    });

    it('serves two nodes that count the same clients in opposite orders', async () => {
      const clients = range(60).map((n) => `client-${n}`);
      const submit = (node: Database, list: readonly string[]): Promise<number>[] => {
        const count = createSharedCounter(node);
        return list.map((client) => count({ bucket: 'cross', client, windowEnds: 60_000 }));
      };
      await Promise.all([...submit(db.database, clients), ...submit(other, [...clients].reverse())]);
      const hits = await other.read('rate_counters').where({ bucket: 'cross' }).pluck('hits');
      expect(hits).toEqual(clients.map(() => 2));
    });

    it('knows the first use of a sign-in state on any node, by its hash, for as long as the state is good', async () => {
      const deps = { serverSecret: randomBytes(32), saltOf: () => 'salt', clock: () => 0 };
      const nodes = [db.database, other].map((node) => createLimiters(UNLIMITED, node, deps).signIn);
      const use = (node: number, state: string) => nodes[node]?.isFirstUse(state, 600_000);
      const uses = await Promise.all([use(0, 'a'), use(1, 'a'), use(0, 'a'), use(1, 'b')]);
      expect(uses.filter(Boolean)).toHaveLength(2);
      expect([await use(0, 'a'), await use(0, 'b'), await use(1, 'c')]).toEqual([false, false, true]);
      const stored = await other.read('rate_counters').where({ bucket: 'login-state' }).pluck('client');
      expect(new Set(stored)).toEqual(new Set(['a', 'b', 'c'].map(sha256Text)));
    });

    it('waits for no disk and no standby', async () => {
      const { kind, read } = db.database;
      // On SQLite there is only one process, which counts in memory.
      if (kind === 'sqlite') return;
      const [table] = await read('pg_class').where({ relname: 'rate_counters' }).pluck('relpersistence');
      expect(table).toBe('u');
    });

    it('forgets a window when one more has passed', async () => {
      const count = createSharedCounter(db.database);
      const hit = { bucket: 'purge', client: 'c' };
      for (const windowEnds of [1000, 2000, 3000]) await count({ ...hit, windowEnds });
      const countRows = (): Promise<number[]> =>
        other.read('rate_counters').where({ bucket: 'purge' }).orderBy('window_ends').pluck('window_ends');
      await purgeCounters(db.database, 3000, 1000);
      expect(await countRows()).toEqual([2000, 3000]);
      await purgeCounters(db.database, 3001, 1000);
      expect(await countRows()).toEqual([3000]);
    });
  });
}
