import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { findDecision } from '../../../src/ingest/decisions-store.ts';
import { findSummary } from '../../../src/ingest/summary-store.ts';
import { createMasterKey } from '../../../src/keys/master-key.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { anchorVerdicts } from '../../../src/log/anchors.ts';
import { lockHead } from '../../../src/log/entries.ts';
import { enqueue } from '../../../src/notify/outbox.ts';
import {
  type Contest,
  contestTextsOf,
  fileContest,
  resolveContest,
} from '../../../src/rights/contests/contest.ts';
import {
  type ContestRow,
  findContest,
  insertContest,
  insertOverride,
  listContests,
  lockContest,
  updateContest,
} from '../../../src/rights/contests/store.ts';
import { countDecisions, readContests, readOverride } from '../../../src/rights/dsar/store.ts';
import { DEFENCE_BASIS } from '../../../src/rights/erase/erasure.ts';
import type { RowTarget } from '../../../src/rights/erase/find.ts';
import { eraseRows } from '../../../src/rights/erase/rows.ts';
import { linkedRequests, linkRequest } from '../../../src/rights/link-store.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import {
  addTenant,
  holdTransaction,
  type MakeDatabase,
  othersWait,
  type TestDatabase,
} from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { sealProblems } from '../../support/verify.ts';
import { WORDS } from './contest-texts.ts';

export function rightsContract(make: MakeDatabase): void {
  describe('contests, links, erasure and retention', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const record = (kid: string, id: string, fields: object = {}) =>
      createRecorder(db.database).record(createEntry({ kid, id, ...fields }));
    const contestOn = (kid: string, id: string, durable = 'durable-1'): Contest =>
      fileContest(
        {
          kid,
          contestId: `con_${kid}_${id}`,
          requestId: `req_${id}`,
          durable,
          class: 'unknown',
          filedBy: 'anna',
          statement: 'words',
        },
        NOW,
      );
    const file = (contest: Contest) => db.database.transaction((tx) => insertContest(tx, WORDS, contest));
    /** Devices that both a sighting and a visitorId lead to. */
    const durablesLeft = async (kid: string): Promise<readonly string[]> => {
      const [scanned, indexed] = await Promise.all(
        ['sightings', 'visitor_index'].map((table) =>
          other.read(table).where({ kid }).orderBy('durable').pluck('durable'),
        ),
      );
      expect(indexed).toEqual(scanned);
      return scanned as string[];
    };
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

    it('keeps a contest as it is, one a decision, whoever is first', async () => {
      const kid = await addTenant(db.database, 'contests');
      await record(kid, 'a');
      const contest = contestOn(kid, 'a');
      const won = await Promise.all([
        file(contest),
        other.transaction((tx) => insertContest(tx, WORDS, { ...contest, contestId: 'con_second' })),
      ]);
      expect(won.filter(Boolean)).toHaveLength(1);
      const first = await findContest(other.read, WORDS, { kid, requestId: 'req_a' });
      expect({ ...first, contestId: '' }).toEqual({ ...contest, contestId: '' });
      const by = { reason: 'r', role: 'dpo', by: 'rita', version: null, fourEyes: false } as const;
      const ruling = { ...by, outcome: 'overturned', label: 'Rita' } as const;
      const resolved = resolveContest(first as Contest, ruling, NOW + 1);
      await db.database.transaction(async (tx) => {
        expect(await lockContest(tx, WORDS, resolved.contestId)).toEqual(first);
        await updateContest(tx, WORDS, resolved);
      });
      expect(await findContest(other.read, WORDS, { contestId: resolved.contestId })).toEqual(resolved);
      expect(await findDecision(other, kid, 'req_a')).toMatchObject({ restricted: false, overturned: true });
    });

    describe('what was written about a contest', () => {
      const rowOf = async (kid: string) =>
        (await other.read('contests').where({ kid }).first()) as ContestRow;
      const by = { by: 'rita', label: 'Rita', at: NOW };
      const proposal = { outcome: 'upheld', reason: 'proposed words', ...by } as const;
      const contestOf = (kid: string): Contest => ({
        ...contestOn(kid, 'w'),
        statement: 'stated words',
        question: 'asked words',
        reason: 'ruled words',
        proposal,
      });

      it('stays null or empty when nothing was written', async () => {
        const kid = await addTenant(db.database, 'no-words');
        await file({ ...contestOn(kid, 'w'), statement: null });
        expect((await rowOf(kid)).sealed).toBeNull();
        await db.database.transaction((tx) => tx('contests').where({ kid }).delete());
        await file({ ...contestOn(kid, 'w'), statement: '' });
        expect((await findContest(other.read, WORDS, { kid, requestId: 'req_w' }))?.statement).toBe('');
      });

      it('opens for its own contest and under its own key alone; without a key nothing is written', async () => {
        const kid = await addTenant(db.database, 'moved-words');
        const [one, two] = [contestOf(kid), { ...contestOn(kid, 'v'), statement: 'of another' }];
        for (const contest of [one, two]) await file(contest);
        const { sealed } = (await other
          .read('contests')
          .where({ contest_id: one.contestId })
          .first()) as ContestRow;
        await db.database.transaction((tx) =>
          tx('contests').where({ contest_id: two.contestId }).update({ sealed }),
        );
        await expect(findContest(other.read, WORDS, { contestId: two.contestId })).rejects.toThrow(
          'does not open',
        );
        const stranger = contestTextsOf(() => ({
          wrapper: createMasterKey(Buffer.alloc(32, 8), randomBytes),
        }));
        await expect(findContest(other.read, stranger, { contestId: one.contestId })).rejects.toThrow(
          'does not open',
        );
        const nobody = contestTextsOf(() => undefined);
        expect(await findContest(other.read, nobody, { contestId: one.contestId })).toMatchObject({
          statement: null,
        });
        const writing = db.database.transaction((tx) => updateContest(tx, nobody, one));
        await expect(writing).rejects.toThrow('no tenant');
      });
    });

    it('lists by due date, filtered, in pages', async () => {
      const kid = await addTenant(db.database, 'queue');
      for (const [i, id] of ['q1', 'q2', 'q3'].entries())
        await file({
          ...contestOn(kid, id),
          dueAt: NOW + (3 - i) * DAY,
          class: i === 0 ? 'human' : 'unknown',
        });
      const ids = async (filter: Parameters<typeof listContests>[3], limit = 10) =>
        (await listContests(other, WORDS, kid, filter, limit)).map(({ requestId }) => requestId);
      expect(await ids({})).toEqual(['req_q3', 'req_q2', 'req_q1']);
      expect(await ids({ class: 'human' })).toEqual(['req_q1']);
      expect(await ids({ status: 'resolved' })).toEqual([]);
      expect(await ids({ dueBefore: NOW + 2 * DAY })).toEqual(['req_q3']);
      const [first] = await listContests(other, WORDS, kid, {}, 1);
      expect(await ids({ after: first as Contest }, 1)).toEqual(['req_q2']);
    });

    it('links a request with one principal', async () => {
      const kid = await addTenant(db.database, 'links');
      const link = (database: Database, principal: string) =>
        database.transaction((tx) => linkRequest(tx, { kid, requestId: 'req_l', principal, linkedAt: NOW }));
      const [one, two] = await Promise.all([link(db.database, 'p1'), link(other, 'p2')]);
      expect(one.principal).toBe(two.principal);
      expect(await linkedRequests(other, kid, one.principal)).toEqual(['req_l']);
    });

    it('tells how rare the signals of a visit are among the devices of the tenant', async () => {
      const kid = await addTenant(db.database, 'summary');
      const signals = [{ name: 'gpu', value: 'keyed' }];
      const summary = { signals, joint: 'all', expiresAt: NOW + DAY };
      for (const id of ['m1', 'o1']) await record(kid, id, { durable: id, summary });
      expect(await findSummary(other, kid, 'req_o1', NOW)).toEqual({
        devices: 2,
        jointBits: 0,
        signals: [{ name: 'gpu', bits: 0 }],
      });
    });

    it('erases a request alone, and keeps what a person needs for their defence', async () => {
      const kid = await addTenant(db.database, 'alone');
      await record(kid, 'd1');
      await record(kid, 'd2');
      await erase(kid, { requests: ['req_d1'] });
      expect(await findDecision(other, kid, 'req_d1')).toBeNull();
      expect(await findDecision(other, kid, 'req_d2')).not.toBeNull();
      await file(contestOn(kid, 'd2'));
      await db.database.transaction((tx) =>
        insertOverride(tx, { kid, durable: 'durable-1', requestId: 'req_d2', at: NOW }),
      );
      const keep = { openContests: true, override: true };
      const { counts, others: needles } = await erase(kid, {
        durables: ['durable-1'],
        requests: ['req_d2'],
        keep,
      });
      for (const scope of ['contests', 'decisions', 'override', 'visitor-index'] as const)
        expect(counts[scope]).toMatchObject({ erased: 0, retained: 1, basis: DEFENCE_BASIS });
      expect(counts.sightings).toMatchObject({ erased: 1 });
      // They stand in what is kept: nobody has to look for them, or to write the file anew.
      expect(needles).toEqual([]);
      expect(await findDecision(other, kid, 'req_d2')).toMatchObject({ restricted: true });
    });

    it('reaches what hangs on a contest whose decision retention took before', async () => {
      const kid = await addTenant(db.database, 'orphan');
      await file(contestOn(kid, 'gone', 'mine'));
      const message = { kid, webhook: 'w', principal: 'ref of req_gone', at: NOW, ciphertext: 's' };
      await db.database.transaction(async (tx) => {
        await enqueue(tx, [{ ...message, event: 'contest.resolved', requestId: null }]);
        await linkRequest(tx, { kid, requestId: 'req_gone', principal: 'p', linkedAt: NOW });
      });
      const { counts, requests } = await erase(kid, { durables: ['mine'] });
      expect(counts).toMatchObject({ contests: { erased: 1 }, links: { erased: 1 } });
      expect(requests).toEqual(['req_gone']);
      expect(await other.read('webhook_outbox').where({ kid })).toEqual([]);
    });

    it('an override that is kept names none of the erased requests, however many there were', async () => {
      const kid = await addTenant(db.database, 'many');
      const ids = Array.from({ length: 700 }, (_, i) => `n${i}`);
      const recorder = createRecorder(db.database);
      await Promise.all(ids.map((id) => recorder.record(createEntry({ kid, id }))));
      const override = { kid, durable: 'durable-1', requestId: 'req_n699', at: NOW };
      await db.database.transaction((tx) => insertOverride(tx, override));
      await erase(kid, { durables: ['durable-1'], keep: { openContests: true, override: true } });
      expect(await other.read('overrides').where({ kid }).pluck('request_id')).toEqual([null]);
    });

    it('seals hold over erasures of sealed and of unsealed hours, whatever their order', async () => {
      const kid = await addTenant(db.database, 'sealed-erase');
      const begin = Math.floor(NOW / HOUR) * HOUR;
      for (const id of ['s1', 's2', 's3', 's4', 's5'])
        await record(kid, id, { decidedAt: begin, durable: id });
      await record(kid, 'u1', { decidedAt: begin + HOUR, durable: 'u1' });
      await record(kid, 'u2', { decidedAt: begin + HOUR, durable: 'u2' });
      await erase(kid, { durables: ['u1'] });
      expect(await anchorVerdicts(db.database, kid, begin + 2 * HOUR)).toBe(1);
      await erase(kid, { durables: ['s4', 's2'] });
      expect(await sealProblems(other, kid)).toEqual([]);
      expect(await anchorVerdicts(db.database, kid, begin + 4 * HOUR)).toBe(1);
      await erase(kid, { durables: ['s1', 's3', 'u2'] });
      expect(await sealProblems(other, kid)).toEqual([]);
      await db.database.transaction((tx) => tx('decisions').where({ kid, request_id: 'req_s5' }).delete());
      expect(await sealProblems(other, kid)).toEqual([expect.stringContaining('1 of 5 verdicts')]);
    });

    it('retention leaves a decision that is contested at this moment, and one under a legal hold', async () => {
      const kid = await addTenant(db.database, 'retention-race');
      const old = { decidedAt: NOW - 40 * DAY };
      await record(kid, 'rc', { ...old, durable: 'rc' });
      await record(kid, 'rh', { ...old, durable: 'rh' });
      const hold = { kid, durable: 'rh', basis: 'case 9', created_at: NOW };
      await db.database.transaction((tx) => tx('legal_holds').insert(hold));
      const filing = await holdTransaction(db.database, async (tx) => {
        await lockHead(tx, kid);
        await insertContest(tx, WORDS, contestOn(kid, 'rc', 'rc'));
      });
      const retained = deleteExpired(other, { kid, days: 30, now: NOW });
      await Promise.race([retained, othersWait(other)]);
      await filing.commit();
      expect(await retained).toMatchObject({ decisions: 0 });
      for (const id of ['req_rc', 'req_rh']) expect(await findDecision(other, kid, id), id).not.toBeNull();
    });

    it('retention leaves the device of a held decision that is contested at this moment', async () => {
      const kid = await addTenant(db.database, 'device-race');
      await record(kid, 'dr', { decidedAt: NOW - 40 * DAY, durable: 'dr' });
      const hold = { kid, durable: 'dr', basis: 'case 9', created_at: NOW };
      await db.database.transaction((tx) => tx('legal_holds').insert(hold));
      await db.database.transaction((tx) =>
        linkRequest(tx, { kid, requestId: 'req_dr', principal: 'p', linkedAt: NOW - 40 * DAY }),
      );
      const filing = await holdTransaction(db.database, async (tx) => {
        await lockHead(tx, kid);
        await insertContest(tx, WORDS, contestOn(kid, 'dr', 'dr'));
      });
      const retained = deleteExpired(other, { kid, days: 30, now: NOW });
      await Promise.race([retained, othersWait(other)]);
      await filing.commit();
      expect(await retained).toMatchObject({ links: 0, sightings: 0, visitorIndex: 0 });
      expect(await durablesLeft(kid)).toEqual(['dr']);
    });

    it('reads what is held by more links than a statement has parameters', async () => {
      const kid = await addTenant(db.database, 'linked');
      for (const id of ['l1', 'l2']) await record(kid, id, { durable: id });
      await file(contestOn(kid, 'l1', 'l1'));
      const override = { kid, durable: 'l1', requestId: 'req_l1', at: NOW };
      await db.database.transaction((tx) => insertOverride(tx, override));
      const unrelatedIds = Array.from({ length: 70_000 }, (_, i) => `req_no${i}`);
      const linked = [...unrelatedIds, 'req_l1', 'req_l2'];
      const reach = { durable: null, linked };
      expect(await countDecisions(other, kid, reach)).toBe(2);
      expect(await readContests(other, WORDS, kid, reach)).toMatchObject([{ requestId: 'req_l1' }]);
      expect(await readOverride(other, kid, reach)).toMatchObject({ requestId: 'req_l1' });
      const both = { durable: 'l1', linked: ['req_l1', 'req_l2'] };
      expect(await countDecisions(other, kid, both)).toBe(2);
      expect(await readContests(other, WORDS, kid, both)).toHaveLength(1);
      expect(await countDecisions(other, kid, { durable: null, linked: [] })).toBe(0);
    });
  });
}
