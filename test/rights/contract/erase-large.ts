import type { Knex } from 'knex';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/db.ts';
import { decisionKey, findDecision, tenantOfDecision } from '../../../src/ingest/decision-store.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { lockHead } from '../../../src/log/append-store.ts';
import { anchorVerdicts } from '../../../src/log/verdict-anchor-store.ts';
import { fileContest } from '../../../src/rights/contests/contest.ts';
import { findContest, insertContest, insertOverride } from '../../../src/rights/contests/store.ts';
import {
  countDecisions,
  countTrail,
  deviceTrail,
  heldDecisions,
  heldDevice,
  heldLinks,
} from '../../../src/rights/dsar/store.ts';
import { asMarked, type Scope, scopeResults } from '../../../src/rights/erase/erasure.ts';
import { type RowTarget, requestsOf } from '../../../src/rights/erase/find-store.ts';
import { dueErasures, placeHold, releaseHold } from '../../../src/rights/erase/hold-store.ts';
import {
  endSteps,
  findErasure,
  insertErasure,
  type StoredErasure,
} from '../../../src/rights/erase/receipts-store.ts';
import {
  dropAbandoned,
  dropStaged,
  type Staged,
  stageTarget,
} from '../../../src/rights/erase/stage-store.ts';
import { deleteMarked, markStaged } from '../../../src/rights/erase/steps-store.ts';
import { eraseRows } from '../../../src/rights/erase/store.ts';
import { durableOfVisitor, linkedRequests, linkRequest } from '../../../src/rights/link-store.ts';
import { tenantRows } from '../../../src/rights/tenant-rows-store.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { makeEntry, NOW } from '../../support/make.ts';
import { makeRecorder } from '../../support/recorder.ts';
import { sealProblems } from '../../support/verify.ts';
import { WORDS } from './contest-texts.ts';

const BEGIN = Math.floor(NOW / HOUR) * HOUR;

/** An erasure in three parts: staged, marked, and gone step by step. */
export function eraseLargeContract(make: MakeDatabase): void {
  describe('an erasure in steps', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const record = (kid: string, id: string, more: object = {}) =>
      makeRecorder(db.database).record(makeEntry({ kid, id, durable: 'mine', ...more }));
    const link = (kid: string, id: string) =>
      db.database.transaction((tx) =>
        linkRequest(tx, { kid, requestId: `req_${id}`, principal: 'anna', linkedAt: NOW }),
      );
    const file = (kid: string, id: string) => {
      const filing = { kid, contestId: `con_${kid}_${id}`, requestId: `req_${id}`, durable: 'mine' };
      const contest = fileContest({ ...filing, class: 'unknown', filedBy: 'anna', statement: null }, NOW);
      return db.database.transaction((tx) => insertContest(tx, WORDS, contest));
    };
    const place = (kid: string, scope: Scope) =>
      db.database.transaction((tx) =>
        placeHold(tx, { kid, durable: 'mine', scope, basis: 'case 12', createdAt: NOW }),
      );
    const release = (kid: string, scope: Scope) =>
      db.database.transaction((tx) => releaseHold(tx, { kid, durable: 'mine', scope }, NOW));
    const left = (kid: string, table = 'decisions'): Promise<string[]> =>
      other.read(table).where({ kid }).orderBy('request_id').pluck('request_id');

    const targetOf = (kid: string, over: Partial<RowTarget> = { durables: ['mine'] }): RowTarget => ({
      kid,
      durables: [],
      requests: [],
      linksOf: null,
      requestRef: (id) => `ref of ${id}`,
      keep: { openContests: false, override: false },
      requestedBy: 'dpo',
      ...over,
    });
    const stagedOf = (kid: string, over?: Partial<RowTarget>): Staged => ({
      receiptId: `era_${kid}`,
      target: targetOf(kid, over),
      at: NOW,
      requests: new Map(),
      withoutDecision: new Set(),
    });
    /** As the service does. */
    const markOf = (staged: Staged, watch: (tx: Knex.Transaction) => void = () => {}) =>
      db.database.transaction(async (tx) => {
        watch(tx);
        const { kid, requestedBy, keep } = staged.target;
        await lockHead(tx, kid);
        const rows = await markStaged(tx, staged);
        const erasure: StoredErasure = {
          receiptId: staged.receiptId,
          kid,
          subject: 's',
          requestedBy,
          keep,
          erasedAt: NOW,
          refs: [],
          scopes: asMarked(scopeResults(rows.counts)),
          step: 'deleting',
        };
        await insertErasure(tx, erasure);
        return { erasure, rows };
      });
    const mark = async (kid: string, over?: Partial<RowTarget>) => {
      const staged = stagedOf(kid, over);
      await stageTarget(db.database, staged);
      return markOf(staged);
    };
    const goOn = (): boolean => true;
    const scopesOf = async ({ receiptId }: StoredErasure) =>
      Object.fromEntries(
        ((await findErasure(other.read, receiptId))?.scopes ?? []).map(({ scope, action, count }) => [
          scope,
          `${action} ${count}`,
        ]),
      );

    it('hides all of it with the mark, and then deletes it', async () => {
      // Request ids of its own: a decision is looked for in every tenant.
      const kid = await addTenant(db.database, 'hidden');
      for (const id of ['one', 'two', 'three'])
        await record(kid, id, {
          summary: { signals: [], joint: 'j', newDevice: false, counts: false, expiresAt: NOW + DAY },
        });
      await record(kid, 'theirs', { durable: 'theirs' });
      const [own = ''] = (await other
        .read('visitor_index')
        .where({ kid, durable: 'mine' })
        .pluck('visitor_id')) as string[];
      await link(kid, 'two');
      await link(kid, 'theirs');
      await file(kid, 'three');
      await db.database.transaction((tx) =>
        insertOverride(tx, { kid, durable: 'mine', requestId: 'req_three', at: NOW }),
      );
      const { erasure, rows } = await mark(kid);
      expect(rows).toMatchObject({ visitorIds: [own], devices: ['mine'] });

      for (const id of ['one', 'two', 'three']) {
        expect(await findDecision(other, kid, `req_${id}`)).toBeNull();
        expect(await decisionKey(other.read, kid, `req_${id}`)).toBeNull();
        expect(await tenantOfDecision(other, `req_${id}`)).toBeNull();
        expect(await findContest(other.read, WORDS, { kid, requestId: `req_${id}` })).toBeNull();
      }
      expect(await durableOfVisitor(other, kid, own)).toBeNull();
      expect(await heldDevice(other, kid, 'mine')).toBeNull();
      expect(await deviceTrail(other, kid, 'mine', 9)).toEqual([]);
      expect(await countTrail(other, kid, 'mine', 9)).toBe(0);
      expect(await linkedRequests(other, kid, 'anna')).toEqual(['req_theirs']);
      expect(await heldLinks(other, kid, 'anna')).toMatchObject([{ requestId: 'req_theirs' }]);
      const reach = { durable: 'mine', linked: ['req_one', 'req_theirs'] };
      expect(await countDecisions(other, kid, reach)).toBe(1);
      const told: string[] = [];
      for await (const page of heldDecisions(other, kid, reach)) told.push(...page.map((d) => d.requestId));
      expect(told).toEqual(['req_theirs']);
      for (const table of ['decisions', 'links', 'signal_summaries'] as const) {
        const exported: unknown[] = [];
        for await (const row of tenantRows(other, kid, table)) exported.push(row['request_id']);
        expect(exported.filter((id) => id !== 'req_theirs')).toEqual([]);
      }
      expect(await requestsOf(other.read, targetOf(kid))).toEqual(new Map());
      // The rows are there still.
      expect(await left(kid)).toHaveLength(4);
      expect(await scopesOf(erasure)).toMatchObject({
        sightings: 'pending 1',
        decisions: 'pending 3',
        contests: 'pending 1',
        override: 'pending 1',
        links: 'pending 0',
      });

      expect([...(await deleteMarked(other, erasure, goOn))].sort()).toEqual([
        'req_one',
        'req_three',
        'req_two',
      ]);
      expect(await endSteps(other, erasure.receiptId)).toMatchObject({ step: 'logged' });
      expect(await left(kid)).toEqual(['req_theirs']);
      expect(await left(kid, 'links')).toEqual(['req_theirs']);
      for (const table of ['signal_summaries', 'erasing', 'contests'])
        expect(await other.read(table).where({ kid }), table).toEqual([]);
      expect(await scopesOf(erasure)).toMatchObject({
        decisions: 'pending 3',
        links: 'pending 1',
        'signal-summaries': 'pending 3',
      });
    });

    // Guards against: of 100,000 decisions each was looked at twice while the tenant's log was locked, and nobody could withdraw.
    it('looks for no decision under the lock of the log, unless the device came again', async () => {
      const kid = await addTenant(db.database, 'quiet');
      for (const id of ['a', 'b']) await record(kid, `quiet-${id}`);
      const asked = async (staged: Staged): Promise<number> => {
        let looks = 0;
        const marked = markOf(staged, (tx) =>
          tx.on('query', ({ sql }: { sql: string }) => {
            if (/from [`"]decisions[`"]/.test(sql)) looks += 1;
          }),
        );
        expect((await marked).rows.counts.decisions).toEqual({ erased: 2, retained: 0 });
        return looks;
      };
      const staged = stagedOf(kid);
      await stageTarget(db.database, staged);
      expect(await asked(staged)).toBe(0);

      // A decision whose device has no sighting: nothing says that it came.
      const other = await addTenant(db.database, 'unseen');
      await record(other, 'unseen-a');
      await db.database.transaction((tx) => tx('sightings').where({ kid: other }).delete());
      const late = stagedOf(other);
      await stageTarget(db.database, late);
      await record(other, 'unseen-b');
      await db.database.transaction((tx) => tx('sightings').where({ kid: other }).delete());
      expect(await asked(late)).toBeGreaterThan(0);
    });

    it('leaves what the device does after the mark, and takes what came before it', async () => {
      const kid = await addTenant(db.database, 'new-life');
      for (const id of ['a', 'z']) await record(kid, id);
      const staged = stagedOf(kid);
      await stageTarget(db.database, staged);
      // Its id stands in the middle of those that were staged.
      await record(kid, 'm');
      const { erasure } = await markOf(staged);
      await record(kid, 'n');
      await file(kid, 'n');
      await link(kid, 'n');
      expect(await findDecision(other, kid, 'req_n')).toMatchObject({ restricted: true });
      await deleteMarked(db.database, erasure, goOn);
      expect(await left(kid)).toEqual(['req_n']);
      for (const table of ['contests', 'links']) expect(await left(kid, table)).toEqual(['req_n']);
      expect(await heldDevice(other, kid, 'mine')).toMatchObject({ seen: 1, visitorIds: [{}] });
      expect(await scopesOf(erasure)).toMatchObject({ decisions: 'pending 3', contests: 'none 0' });
    });

    it('a second erasure beside the steps is told of the new visits alone', async () => {
      const kid = await addTenant(db.database, 'twice');
      for (const id of ['a', 'b', 'c']) await record(kid, id, { decidedAt: BEGIN });
      await anchorVerdicts(db.database, kid, BEGIN + 2 * HOUR);
      const { erasure } = await mark(kid);
      await record(kid, 'n');
      const { counts } = await db.database.transaction(async (tx) => {
        await lockHead(tx, kid);
        // By its id a visit that is marked may go at once.
        return eraseRows(tx, targetOf(kid, { durables: ['mine'], requests: ['req_b'] }));
      });
      expect(counts).toMatchObject({ decisions: { erased: 2 }, 'visitor-index': { erased: 1 } });
      expect(await left(kid)).toEqual(['req_a', 'req_c']);
      await deleteMarked(db.database, erasure, goOn);
      expect(await left(kid)).toEqual([]);
      expect(await sealProblems(other, kid)).toEqual([]);
    });

    it('the seals of its hours hold after each step, on two nodes at once', async () => {
      const kid = await addTenant(db.database, 'step-seals');
      const ids = Array.from({ length: 900 }, (_, i) => String(i).padStart(4, '0'));
      // Three of four are of the device; hours and ids in different orders.
      const momentOf = (i: number): number => BEGIN + ((i * 7) % 3) * HOUR + (i % 1000);
      const recorder = makeRecorder(db.database);
      await Promise.all(
        ids.map((id, i) =>
          recorder.record(
            makeEntry({ kid, id, decidedAt: momentOf(i), durable: i % 4 === 0 ? 'theirs' : 'mine' }),
          ),
        ),
      );
      // The last hour is sealed between the mark and the steps.
      await anchorVerdicts(db.database, kid, BEGIN + 2 * HOUR + HOUR / 2);
      await db.database.transaction(async (tx) => {
        await lockHead(tx, kid);
        await eraseRows(tx, targetOf(kid, { requests: ['req_0001', 'req_0401', 'req_0899'] }));
      });
      const { erasure } = await mark(kid);
      expect(await sealProblems(other, kid)).toEqual([]);
      let steps = 0;
      await deleteMarked(db.database, erasure, () => {
        steps += 1;
        return steps === 1;
      });
      const some = await left(kid);
      expect([some.length < 897, some.length > 225]).toEqual([true, true]);
      expect(await endSteps(other, erasure.receiptId)).toBeNull();
      expect(await sealProblems(other, kid)).toEqual([]);
      await anchorVerdicts(db.database, kid, BEGIN + 9 * HOUR);
      await Promise.all([db.database, other].map((node) => deleteMarked(node, erasure, goOn)));
      expect(await left(kid)).toHaveLength(225);
      expect(await sealProblems(other, kid)).toEqual([]);
      expect(await other.read('verdict_seals').where({ kid })).toHaveLength(3);
      expect(await endSteps(other, erasure.receiptId)).toMatchObject({ step: 'logged' });
    });

    it('what is staged and not marked hides nothing, and is forgotten', async () => {
      const kid = await addTenant(db.database, 'staged');
      await record(kid, 'a');
      const staged = stagedOf(kid);
      await stageTarget(db.database, staged);
      expect(await findDecision(other, kid, 'req_a')).not.toBeNull();
      await dropAbandoned(db.database, NOW);
      expect(await left(kid, 'erasing')).toEqual(['req_a']);
      await dropAbandoned(db.database, NOW + 1);
      expect(await left(kid, 'erasing')).toEqual([]);
      await mark(kid);
      // Nobody knows whether a COMMIT was done: what is marked is not forgotten.
      await dropAbandoned(db.database, NOW + 1);
      await dropStaged(db.database, staged.receiptId);
      expect(await left(kid, 'erasing')).toEqual(['req_a']);
    });

    it('/me forget keeps an open contest with its decision in sight', async () => {
      const kid = await addTenant(db.database, 'step-forget');
      for (const id of ['a', 'b']) await record(kid, id);
      await file(kid, 'a');
      const keep = { openContests: true, override: true };
      const { erasure } = await mark(kid, { durables: ['mine'], keep });
      expect(await findDecision(other, kid, 'req_a')).toMatchObject({ restricted: true });
      expect(await findDecision(other, kid, 'req_b')).toBeNull();
      expect(await scopesOf(erasure)).toMatchObject({ decisions: 'retained 1', contests: 'retained 1' });
      await deleteMarked(db.database, erasure, goOn);
      expect(await left(kid)).toEqual(['req_a']);
    });

    describe('under legal holds', () => {
      it('a hold that was there keeps its rows; one that comes after the mark keeps none', async () => {
        const kid = await addTenant(db.database, 'step-holds');
        for (const id of ['a', 'b']) await record(kid, id);
        await link(kid, 'a');
        await place(kid, 'links');
        const { erasure, rows } = await mark(kid);
        await place(kid, 'decisions');
        expect([...(await deleteMarked(db.database, erasure, goOn))]).toEqual(['req_b']);
        expect(await left(kid)).toEqual([]);
        expect(await left(kid, 'links')).toEqual(['req_a']);
        expect(await scopesOf(erasure)).toMatchObject({ decisions: 'pending 2', links: 'retained 1' });
        expect((await findErasure(other.read, erasure.receiptId))?.scopes).toContainEqual({
          scope: 'links',
          action: 'retained',
          count: 1,
          basis: 'case 12',
        });
        expect(rows.counts.decisions).toEqual({ erased: 2, retained: 0 });
        // Its release erases the device.
        expect(await release(kid, 'links')).toEqual({ waited: true });
      });

      it('keeps held decisions, and says so with the mark', async () => {
        const kid = await addTenant(db.database, 'step-kept');
        for (const id of ['a', 'b']) await record(kid, id);
        await place(kid, 'decisions');
        const { erasure } = await mark(kid);
        expect(await scopesOf(erasure)).toMatchObject({ decisions: 'retained 2' });
        await deleteMarked(db.database, erasure, goOn);
        expect(await left(kid)).toEqual(['req_a', 'req_b']);
        expect(await findDecision(other, kid, 'req_a')).not.toBeNull();
        expect(await scopesOf(erasure)).toMatchObject({ decisions: 'retained 2' });
      });

      it('single requests wait for it, and are due with a release that comes before or after their step', async () => {
        const kid = await addTenant(db.database, 'step-waits');
        for (const id of ['a', 'b', 'c']) await record(kid, id);
        await place(kid, 'decisions');
        const requests = ['req_a', 'req_b'];
        const { erasure } = await mark(kid, { requests });
        await deleteMarked(db.database, erasure, goOn);
        expect(await release(kid, 'decisions')).toEqual({ waited: true });
        expect(await dueErasures(other, NOW, { kid, durable: 'mine' })).toMatchObject([
          { whole: false, requests },
        ]);
        await db.database.transaction((tx) => tx('erasures').where({ kid }).delete());
        await place(kid, 'decisions');
        const second = await mark(kid, { requests });
        // Due no longer: the erasure that is marked has them in hand.
        expect(await dueErasures(other, NOW, { kid })).toEqual([]);
        await release(kid, 'decisions');
        await deleteMarked(db.database, second.erasure, goOn);
        expect(await left(kid)).toEqual(['req_c']);
      });
    });
  });
}
