import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { rowsOf } from '../../../src/db/sql.ts';
import { lockHead } from '../../../src/log/entries.ts';
import { type Contest, fileContest, resolveContest } from '../../../src/rights/contests/contest.ts';
import {
  insertContest,
  insertOverride,
  lockContest,
  updateContest,
} from '../../../src/rights/contests/store.ts';
import type { RowTarget } from '../../../src/rights/erase/find.ts';
import { eraseRows } from '../../../src/rights/erase/rows.ts';
import {
  addTenant,
  holdTransaction,
  type MakeDatabase,
  type TestDatabase,
} from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { WORDS } from './contest-texts.ts';

/** Another node commits while an erasure waits for its lock. */
export function eraseBesideContract(make: MakeDatabase): void {
  describe('an erasure beside others', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const target = (kid: string, over: Partial<RowTarget>): RowTarget => ({
      kid,
      durables: [],
      requests: [],
      linksOf: null,
      requestRef: (id) => `ref of ${id}`,
      keep: { openContests: false, override: false },
      ...over,
    });
    const erase = (kid: string, over: Partial<RowTarget>) =>
      db.database.transaction(async (tx) => {
        await lockHead(tx, kid);
        return eraseRows(tx, target(kid, over));
      });

    /** Somebody waits for a lock. SQLite's one writer waits for the whole file, and nothing can see it. */
    async function somebodyWaits(): Promise<void> {
      if (other.kind === 'sqlite') return;
      await vi.waitFor(
        async () => {
          const found = await other.read.raw('SELECT 1 FROM pg_locks WHERE NOT granted');
          expect(rowsOf(found)).not.toEqual([]);
        },
        { interval: 10, timeout: 20_000 },
      );
    }

    it.each([
      ['the device', { durables: ['mine'] }],
      ['the request', { requests: ['req_a'] }],
    ])('takes the override of a ruling that commits meanwhile, by %s', async (title, over) => {
      const kid = await addTenant(db.database, `ruled-${title.slice(4)}`);
      await createRecorder(db.database).record(createEntry({ kid, id: 'a', durable: 'mine' }));
      const filing = { kid, contestId: `con_${kid}`, requestId: 'req_a', durable: 'mine', class: 'unknown' };
      const contest = fileContest({ ...filing, filedBy: 'anna', statement: null }, NOW);
      await db.database.transaction((tx) => insertContest(tx, WORDS, contest));
      const ruling = await holdTransaction(other, async (tx) => {
        const found = (await lockContest(tx, WORDS, contest.contestId)) as Contest;
        const by = { reason: 'r', role: 'dpo', by: 'rita', version: null, fourEyes: false } as const;
        await updateContest(tx, WORDS, resolveContest(found, { ...by, outcome: 'overturned' }, NOW));
        await insertOverride(tx, { kid, durable: 'mine', requestId: 'req_a', at: NOW });
      });
      const erasing = erase(kid, over);
      await somebodyWaits();
      await ruling.commit();
      const { counts } = await erasing;
      expect(counts).toMatchObject({ contests: { erased: 1 }, override: { erased: 1 } });
      expect(await other.read('overrides').where({ kid })).toEqual([]);
    });
  });
}
