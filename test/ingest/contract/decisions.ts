import { describe, expect, it } from 'vitest';
import {
  endsChain,
  findDecision,
  MAX_UPDATES,
  purgeNonces,
  withLater,
} from '../../../src/ingest/decisions-store.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { noteStatements } from '../../support/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

export function decisionContract(make: MakeDatabase): void {
  describe('decisions and nonces', () => {
    const { db, other } = twoNodes(make);

    const nonces = (): Promise<string[]> => other.read('nonces').orderBy('nonce').pluck('nonce');

    it('follows a chain of updates by one query, onwards alone, and no further than it may become', async () => {
      const kid = 'chain';
      const id = (n: number): string => `req_${n}`;
      for (let n = 0; n <= MAX_UPDATES + 1; n++) {
        const after = n === 0 ? {} : { after: id(n - 1) };
        await createRecorder(db.database).record({ ...createEntry({ kid, id: `${n}` }), ...after });
      }
      let queries = 0;
      noteStatements(other.read, () => {
        queries += 1;
      });
      const from = (first: number, last: number) =>
        Array.from({ length: last - first + 1 }, (_, n) => id(first + n));
      expect(await withLater(other, kid, id(30))).toEqual(from(30, MAX_UPDATES + 1));
      expect(await withLater(other, kid, id(0))).toEqual(from(0, MAX_UPDATES));
      expect(await withLater(other, kid, 'req_unknown')).toEqual(['req_unknown']);
      expect(await withLater(other, 'foreign', id(30))).toEqual([id(30)]);
      expect(queries).toBe(4);
      expect(await endsChain(other, kid, id(MAX_UPDATES - 1))).toBe(false);
      expect(await endsChain(other, kid, id(MAX_UPDATES))).toBe(true);
      expect(await endsChain(other, kid, id(MAX_UPDATES + 1))).toBe(true);
    });

    it('forgets a nonce once it is past its time, and not in its last millisecond', async () => {
      await db.database.transaction((tx) => tx('nonces').delete());
      const recorder = createRecorder(db.database);
      for (const [id, datedAt] of [
        ['past', NOW - 1],
        ['due', NOW],
        ['future', NOW + 1],
      ] as const)
        await recorder.record(createEntry({ kid: 'purge', id, nonce: id, datedAt }));
      expect(await purgeNonces(db.database, NOW)).toBe(1);
      expect(await nonces()).toEqual(['due', 'future']);
      expect(await purgeNonces(db.database, NOW)).toBe(0);
      const claim = (nonce: string) => recorder.record(createEntry({ kid: 'purge', id: `2${nonce}`, nonce }));
      expect([await claim('past'), await claim('due')]).toEqual(['recorded', 'replay']);
    });

    it('never says that a nonce is new that it may have forgotten, though the clock went back', async () => {
      const recorder = createRecorder(db.database);
      const forgottenTo = NOW + 3_600_000;
      const bundle = { kid: 'back', nonce: 'once', datedAt: NOW + 300_000 };
      expect(await recorder.record(createEntry({ ...bundle, id: 'first' }))).toBe('recorded');
      await purgeNonces(db.database, forgottenTo);
      await purgeNonces(db.database, NOW);
      expect(await nonces()).not.toContain('once');
      expect(await recorder.record(createEntry({ ...bundle, id: 'again' }))).toBe('stale');
      expect(await findDecision(other, 'back', 'req_again')).toBeNull();
      const later = { ...bundle, nonce: 'later', datedAt: forgottenTo };
      expect(await recorder.record(createEntry({ ...later, id: 'later' }))).toBe('recorded');
      await db.database.transaction((tx) => tx('meta').where('name', 'like', 'nonces-%').delete());
    });

    it('goes through many in small steps, of every tenant, and counts each once when two nodes purge', async () => {
      await db.database.transaction((tx) => tx('nonces').delete());
      const recorder = createRecorder(db.database);
      await Promise.all(
        Array.from({ length: 600 }, (_, i) =>
          recorder.record(
            createEntry({ kid: `both-${i % 3}`, id: `b${i}`, durable: null, datedAt: 2000 + i }),
          ),
        ),
      );
      const purgedCounts = await Promise.all([db.database, other].map((node) => purgeNonces(node, NOW)));
      expect(purgedCounts[0]! + purgedCounts[1]!).toBe(600);
      expect(await nonces()).toEqual([]);
    });

    // Two nodes that wait for each other's rows are a deadlock. SQLite has one writer.
    it('does not wait for the rows that another node deletes', async () => {
      if (db.database.kind === 'sqlite') return;
      await db.database.transaction((tx) => tx('nonces').delete());
      const recorder = createRecorder(db.database);
      for (const id of ['w1', 'w2', 'w3'])
        await recorder.record(createEntry({ kid: 'waits', id, durable: null }));
      await other.transaction(async (tx) => {
        await tx('nonces').where({ nonce: 'nonce-w2' }).delete();
        expect(await purgeNonces(db.database, NOW + 1)).toBe(2);
      });
      expect(await nonces()).toEqual([]);
    });
  });
}
