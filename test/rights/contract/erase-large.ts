import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { HOUR } from '../../../src/lib/clock.ts';
import { anchorVerdicts } from '../../../src/log/anchors.ts';
import { lockHead } from '../../../src/log/entries.ts';
import { fileContest } from '../../../src/rights/contests/contest.ts';
import { insertContest } from '../../../src/rights/contests/store.ts';
import { createEraseService, KEEP_NOTHING } from '../../../src/rights/erase/erase.ts';
import { type Keep, NOTHING } from '../../../src/rights/erase/erasure.ts';
import { placeHold } from '../../../src/rights/erase/hold.ts';
import { beginSteps } from '../../../src/rights/erase/rows.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { tempDir } from '../../support/command.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { sealProblems } from '../../support/verify.ts';
import { WORDS } from './contest-texts.ts';
import { erasedTenant } from './erase-plan.ts';

const BEGIN = Math.floor(NOW / HOUR) * HOUR;

/** An erasure that leaves its requests to steps. */
export function eraseLargeContract(make: MakeDatabase): void {
  describe('an erasure in steps', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const record = (kid: string, id: string, fields: object = {}) =>
      createRecorder(db.database).record(createEntry({ kid, id, durable: 'mine', ...fields }));
    const within = (work: Parameters<Database['transaction']>[0]) => db.database.transaction(work);
    const file = (kid: string, id: string) => {
      const filing = { kid, contestId: `con_${kid}_${id}`, requestId: `req_${id}`, durable: 'mine' };
      const contest = fileContest({ ...filing, class: 'unknown', filedBy: 'anna', statement: null }, NOW);
      return within((tx) => insertContest(tx, WORDS, contest));
    };
    const remainingIds = (kid: string, table = 'decisions'): Promise<string[]> =>
      other.read(table).where({ kid }).orderBy('request_id').pluck('request_id');
    const service = (database: Database, kid: string) =>
      createEraseService({
        database,
        dataDir: tempDir('large'),
        logKey: Buffer.alloc(32, 3),
        clock: () => NOW,
        random: randomBytes,
        rewriteWindow: null,
        tenantOf: () => erasedTenant(kid),
        patienceMs: Number.POSITIVE_INFINITY,
        largeAbove: 1,
        onFault: (error) => {
          throw error;
        },
      });
    const requestOf = (kid: string, keep: Keep = KEEP_NOTHING) => ({
      tenant: erasedTenant(kid),
      target: { ...NOTHING, durables: ['mine'] },
      requestedBy: 'dpo' as const,
      actor: { role: 'dpo', ref: 'dora' } as const,
      keep,
    });
    const scopesOf = ({ scopes }: { scopes: readonly { scope: string; action: string; count: number }[] }) =>
      Object.fromEntries(scopes.map(({ scope, action, count }) => [scope, `${action} ${count}`]));

    it('leaves what the device does after it, and takes what came before', async () => {
      const kid = await addTenant(db.database, 'new-life');
      for (const id of ['a', 'm']) await record(kid, id);
      const eraser = service(db.database, kid);
      await eraser.stop();
      await eraser.erase(requestOf(kid));
      await record(kid, 'n');
      // Filed against a decision that the steps have not reached.
      await file(kid, 'm');
      await file(kid, 'n');
      await service(other, kid).resume();
      expect(await remainingIds(kid)).toEqual(['req_n']);
      expect(await remainingIds(kid, 'contests')).toEqual(['req_n']);
      expect(await other.read('sightings').where({ kid }).pluck('seen')).toEqual([1]);
    });

    it('a hold that was there keeps everything; one that comes after it keeps nothing', async () => {
      const kid = await addTenant(db.database, 'step-holds');
      for (const id of ['a', 'b']) await record(kid, id);
      const place = () =>
        within((tx) => placeHold(tx, { kid, durable: 'mine', basis: 'case 12', createdAt: NOW }));
      const eraser = service(db.database, kid);
      await eraser.stop();
      await eraser.erase(requestOf(kid));
      await place();
      await service(other, kid).resume();
      expect(await remainingIds(kid)).toEqual([]);
      for (const id of ['c', 'd']) await record(kid, id);
      const receipt = await service(other, kid).erase(requestOf(kid));
      expect(scopesOf(receipt)).toMatchObject({ decisions: 'retained 2', sightings: 'retained 1' });
      expect(await remainingIds(kid)).toEqual(['req_c', 'req_d']);
    });

    it('the seals of its hours hold after each step, on two nodes at once', async () => {
      const kid = await addTenant(db.database, 'step-seals');
      const ids = Array.from({ length: 900 }, (_, i) => String(i).padStart(4, '0'));
      // Three of four are of the device; hours and ids in different orders.
      const momentOf = (i: number): number => BEGIN + ((i * 7) % 3) * HOUR + (i % 1000);
      const recorder = createRecorder(db.database);
      await Promise.all(
        ids.map((id, i) =>
          recorder.record(
            createEntry({ kid, id, decidedAt: momentOf(i), durable: i % 4 === 0 ? 'theirs' : 'mine' }),
          ),
        ),
      );
      // The last hour is anchored between the first transaction and the steps.
      await anchorVerdicts(db.database, kid, BEGIN + 2 * HOUR + HOUR / 2);
      const { tenant, target, keep } = requestOf(kid);
      const eraser = service(db.database, kid);
      await eraser.stop();
      await eraser.erase({ tenant, target, keep, requestedBy: 'dpo', actor: { role: 'dpo', ref: 'd' } });
      expect(await sealProblems(other, kid)).toEqual([]);
      await anchorVerdicts(db.database, kid, BEGIN + 9 * HOUR);
      await Promise.all([db.database, other].map((node) => service(node, kid).resume()));
      expect(await remainingIds(kid)).toHaveLength(225);
      expect(await sealProblems(other, kid)).toEqual([]);
      expect(await other.read('verdict_seals').where({ kid })).toHaveLength(3);
    });

    it('looks for no decision of the device under the lock of the log', async () => {
      const kid = await addTenant(db.database, 'quiet');
      for (const id of ['a', 'b']) await record(kid, `quiet-${id}`);
      const looks: string[] = [];
      await within(async (tx) => {
        await lockHead(tx, kid);
        tx.on('query', ({ sql }: { sql: string }) => {
          if (/from [`"]decisions[`"]/.test(sql)) looks.push(sql);
        });
        const target = { ...NOTHING, durables: ['mine'], kid, keep: KEEP_NOTHING, requestRef: String };
        await beginSteps(tx, target, 'era_quiet');
      });
      // The newest alone, by its index.
      expect(looks).toEqual([expect.stringMatching(/order by [`"]request_id[`"] desc limit/)]);
    });
  });
}
