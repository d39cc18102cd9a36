import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { type Bindings, insertMany } from '../../../src/db/sql.ts';
import { addCommitments, anchorBody } from '../../../src/ledger/entries.ts';
import { EMPTY_FRONTIER } from '../../../src/ledger/merkle.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { anchorVerdicts } from '../../../src/log/anchors-store.ts';
import { lockHead } from '../../../src/log/entries-store.ts';
import { purgeOutbox } from '../../../src/notify/outbox-store.ts';
import { insertWebhook } from '../../../src/notify/webhooks-store.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import {
  addTenant,
  holdTransaction,
  type MakeDatabase,
  othersWait,
  type TestDatabase,
} from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { sealProblems } from '../../support/verify.ts';

const BEGIN = Math.floor(NOW / HOUR) * HOUR;

/** There are more rows than gpd reads in one piece or deletes in one step. */
export function sizeContract(make: MakeDatabase): void {
  describe('seals and retention of many rows', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    /** In portions, as many as may wait. */
    const recordAll = async (kid: string, ids: readonly string[], momentOf: (i: number) => number) => {
      const recorder = createRecorder(db.database);
      const entries = ids.map((id, i) => createEntry({ kid, id, decidedAt: momentOf(i), durable: id }));
      for (let i = 0; i < entries.length; i += 1000)
        await Promise.all(entries.slice(i, i + 1000).map((entry) => recorder.record(entry)));
    };
    const insert = (table: string, columns: string, rows: readonly Bindings[]) =>
      db.database.transaction((tx) => insertMany(tx, `INSERT INTO ${table} (${columns})`, rows));

    it('an erasure between the reading of an hour and its sealing has it read again', async () => {
      const kid = await addTenant(db.database, 'sealed-race');
      await recordAll(kid, ['q1', 'q2', 'q3'], () => BEGIN);
      const erasing = await holdTransaction(db.database, async (tx) => {
        await lockHead(tx, kid);
        await tx('decisions').where({ kid, request_id: 'req_q2' }).delete();
      });
      const sealed = anchorVerdicts(other, kid, BEGIN + 2 * HOUR);
      await Promise.race([sealed, othersWait(other)]);
      await erasing.commit();
      expect(await sealed).toBe(1);
      const seal = await other.read('verdict_seals').where({ kid }).first<{ count: number }>('count');
      expect(seal.count).toBe(2);
      expect(await sealProblems(other, kid)).toEqual([]);
    });

    it('seals and checks an hour of more verdicts than one read takes', async () => {
      const kid = await addTenant(db.database, 'sealed-many');
      // Ids and moments in different orders, and more of one moment than a read takes.
      const ids = Array.from({ length: 12_000 }, (_, i) => String((i * 7919) % 12_000).padStart(5, '0'));
      await recordAll(kid, ids, (i) => BEGIN + Math.floor(i / 7000));
      expect(await anchorVerdicts(db.database, kid, BEGIN + 2 * HOUR)).toBe(1);
      expect(await sealProblems(other, kid)).toEqual([]);
      const commitments = await other
        .read('decisions')
        .where({ kid })
        .orderBy('request_id')
        .pluck('commitment');
      const { root } = anchorBody(BEGIN, BEGIN + HOUR, addCommitments(EMPTY_FRONTIER, commitments));
      expect(await other.read('verdict_seals').where({ kid }).first('count', 'root')).toEqual({
        count: 12_000,
        root,
      });
    });

    it('walks through more devices than one read looks at', async () => {
      const kid = await addTenant(db.database, 'retention-many');
      const durables = Array.from({ length: 45_000 }, (_, i) => `d${String(i).padStart(6, '0')}`);
      const last = (i: number): number => (i % 3 === 0 ? NOW - 40 * DAY : NOW);
      await insert(
        'sightings',
        'kid, durable, first_at, last_at, seen',
        durables.map((durable, i) => [kid, durable, last(i), last(i), 1]),
      );
      await insert(
        'visitor_index',
        'kid, visitor_id, durable, epoch, ends_at',
        durables.map((durable) => [kid, `v${durable}`, durable, 690, 691 * 30 * DAY]),
      );
      await insert('legal_holds', 'kid, durable, basis, created_at', [
        [kid, 'd000003', 'case 10', NOW],
        [kid, 'd000006', 'case 10', NOW],
      ]);
      const rules = { kid, days: 30, now: NOW };
      expect(await deleteExpired(db.database, rules)).toMatchObject({
        sightings: 14_998,
        visitorIndex: 14_998,
      });
      expect(await deleteExpired(db.database, rules)).toMatchObject({ sightings: 0, visitorIndex: 0 });
      const chosenDurables = ['d000000', 'd000001', 'd000003', 'd000006'];
      const remaining = other.read('visitor_index').where({ kid }).whereIn('durable', chosenDurables);
      expect(await remaining.orderBy('durable').pluck('durable')).toEqual(['d000001', 'd000003', 'd000006']);
      // 90,000 rows, in steps that get smaller where the machine is busy.
    });

    it('takes ended epochs of devices that are still there', async () => {
      const kid = await addTenant(db.database, 'retention-epochs');
      const epoch = Math.floor(NOW / (30 * DAY));
      await insert('sightings', 'kid, durable, first_at, last_at, seen', [[kid, 'here', 1, NOW, 9]]);
      await insert(
        'visitor_index',
        'kid, visitor_id, durable, epoch, ends_at',
        [0, 1, 2, 3].map((ago) => [kid, `v${ago}`, 'here', epoch - ago, (epoch - ago + 1) * 30 * DAY]),
      );
      const rules = { kid, days: 30, now: NOW };
      expect(await deleteExpired(db.database, rules)).toMatchObject({ sightings: 0, visitorIndex: 2 });
    });

    it('takes old events page by page, and leaves one that still waits', async () => {
      const fixture = await make();
      const kid = await addTenant(fixture.database, 'outbox-many');
      const hook = {
        url: 'https://hook.example/',
        events: ['decision.recorded'],
        allowPrivate: false,
      } as const;
      const webhook = { kid, id: 'w', ...hook, wrappedSecret: 'wrapped', createdAt: NOW };
      await insertWebhook(fixture.database, webhook, operatorAt(NOW));
      const rows = Array.from({ length: 5000 }, (_, i): Bindings => {
        const state = i === 2100 ? 'waiting' : 'delivered';
        return [kid, 'w', 'decision.recorded', NOW + Math.floor(i / 10), state, 0, 0];
      });
      const columns = 'kid, webhook, event, created_at, state, attempts, next_at';
      await fixture.database.transaction((tx) =>
        insertMany(tx, `INSERT INTO webhook_outbox (${columns})`, rows),
      );
      await purgeOutbox(fixture.database, NOW + 450);
      const outboxRows = () => fixture.database.read('webhook_outbox').where({ kid });
      expect(await outboxRows().count({ n: '*' }).first()).toEqual({ n: 501 });
      expect(await outboxRows().where({ state: 'waiting' }).pluck('kid')).toEqual([kid]);
      await fixture.close();
    });
  });
}
