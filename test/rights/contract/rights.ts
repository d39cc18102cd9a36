import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { recordAudit } from '../../../src/audit/audit-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { findDecision } from '../../../src/ingest/decisions-store.ts';
import { findSummary } from '../../../src/ingest/summary-store.ts';
import { createMasterKey } from '../../../src/keys/master-key.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { anchorAudit, anchorVerdicts } from '../../../src/log/anchors-store.ts';
import { lockHead } from '../../../src/log/entries-store.ts';
import { enqueue } from '../../../src/notify/outbox-store.ts';
import { type Contest, contestTextsOf, resolveContest } from '../../../src/rights/contests/contest.ts';
import {
  findContest,
  insertContest,
  insertOverride,
  listContests,
  lockContest,
  updateContest,
} from '../../../src/rights/contests/store.ts';
import { countDecisions, readContests, readOverride } from '../../../src/rights/dsar/store.ts';
import { DEFENCE_BASIS } from '../../../src/rights/erase/erasure-service.ts';
import type { RowTarget } from '../../../src/rights/erase/find-store.ts';
import { eraseRows } from '../../../src/rights/erase/rows-store.ts';
import { linkedRequests, linkRequest } from '../../../src/rights/link-store.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import {
  addTenant,
  holdTransaction,
  type MakeDatabase,
  othersWait,
  someoneWaits,
} from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';
import { sealProblems } from '../../support/verify.ts';
import { contestOf, insert, WORDS } from './contest-texts.ts';

const BEGIN = Math.floor(NOW / HOUR) * HOUR;
const RULING = { reason: 'r', role: 'dpo', by: 'rita', version: null, fourEyes: false } as const;

export function rightsContract(make: MakeDatabase): void {
  describe('contests, links, erasure and retention', () => {
    const { db, other } = twoNodes(make);

    const record = (kid: string, id: string, fields: object = {}) =>
      createRecorder(db.database).record(createEntry({ kid, id, ...fields }));
    const contestOn = (kid: string, id: string, durable = 'durable-1'): Contest =>
      contestOf({ kid, requestId: `req_${id}`, durable, statement: 'words' });
    const file = (contest: Contest) => insert(db.database, contest);
    const erase = (kid: string, over: Partial<RowTarget>) =>
      db.database.transaction(async (tx) => {
        await lockHead(tx, kid);
        const keep = { openContests: false, override: false };
        const target = { kid, durables: [], requests: [], linksOf: null, keep, ...over };
        return eraseRows(tx, { ...target, requestRef: (id) => `ref of ${id}` });
      });
    const override = (kid: string, durable: string, requestId: string) =>
      db.database.transaction((tx) => insertOverride(tx, { kid, durable, requestId, at: NOW }));

    it('keeps a contest as it is, one a decision, whoever is first', async () => {
      const kid = await addTenant(db.database, 'contests');
      await record(kid, 'a');
      const contest = contestOn(kid, 'a');
      const won = await Promise.all([
        file(contest),
        other.transaction((tx) => insertContest(tx, WORDS, { ...contest, contestId: 'con_second' })),
      ]);
      expect(won.filter(Boolean)).toHaveLength(1);
      const first = await findContest(other.read, WORDS, { kid, requestId: 'req_a', kind: 'contest' });
      expect({ ...first, contestId: '' }).toEqual({ ...contest, contestId: '' });
      const ruling = { ...RULING, outcome: 'overturned', label: 'Rita' } as const;
      const resolved = resolveContest(first as Contest, ruling, NOW + 1);
      await db.database.transaction(async (tx) => {
        expect(await lockContest(tx, WORDS, resolved.contestId)).toEqual(first);
        await updateContest(tx, WORDS, resolved);
      });
      expect(await findContest(other.read, WORDS, { contestId: resolved.contestId })).toEqual(resolved);
      expect(await findDecision(other, kid, 'req_a')).toMatchObject({ restricted: false, overturned: true });
    });

    it('a text opens for its own contest and under its own key alone; without a key nothing is written', async () => {
      const kid = await addTenant(db.database, 'moved-words');
      const [one, two, empty] = [
        { ...contestOn(kid, 'w'), question: 'asked words' },
        contestOn(kid, 'v'),
        { ...contestOn(kid, 'u'), statement: null },
      ];
      for (const contest of [one, two, empty]) await file(contest);
      const sealedOf = async ({ contestId }: Contest) =>
        (await other.read('contests').where({ contest_id: contestId }).pluck('sealed'))[0] as string | null;
      expect(await sealedOf(empty)).toBeNull();
      const sealed = await sealedOf(one);
      await db.database.transaction((tx) =>
        tx('contests').where({ contest_id: two.contestId }).update({ sealed }),
      );
      const find = ({ contestId }: Contest, words = WORDS) => findContest(other.read, words, { contestId });
      await expect(find(two)).rejects.toThrow('does not open');
      const strange = createMasterKey(Buffer.alloc(32, 8), randomBytes);
      await expect(
        find(
          one,
          contestTextsOf(() => ({ wrapper: strange })),
        ),
      ).rejects.toThrow('does not open');
      const nobody = contestTextsOf(() => undefined);
      expect(await find(one, nobody)).toMatchObject({ statement: null });
      const writing = db.database.transaction((tx) => updateContest(tx, nobody, one));
      await expect(writing).rejects.toThrow('no tenant');
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
      await override(kid, 'durable-1', 'req_d2');
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
      await override(kid, 'durable-1', 'req_n699');
      await erase(kid, { durables: ['durable-1'], keep: { openContests: true, override: true } });
      expect(await other.read('overrides').where({ kid }).pluck('request_id')).toEqual([null]);
    });

    it.each([
      ['the device', { durables: ['mine'] }],
      ['the request', { requests: ['req_a'] }],
    ])('takes the override of a ruling that commits meanwhile, by %s', async (title, over) => {
      const kid = await addTenant(db.database, `ruled-${title.slice(4)}`);
      await record(kid, 'a', { durable: 'mine' });
      const contest = contestOn(kid, 'a', 'mine');
      await file(contest);
      const ruling = await holdTransaction(other, async (tx) => {
        const found = (await lockContest(tx, WORDS, contest.contestId)) as Contest;
        await updateContest(tx, WORDS, resolveContest(found, { ...RULING, outcome: 'overturned' }, NOW));
        await insertOverride(tx, { kid, durable: 'mine', requestId: 'req_a', at: NOW });
      });
      const erasing = erase(kid, over);
      await someoneWaits(other);
      await ruling.commit();
      const { counts } = await erasing;
      expect(counts).toMatchObject({ contests: { erased: 1 }, override: { erased: 1 } });
      expect(await other.read('overrides').where({ kid })).toEqual([]);
    });

    it('an hour is sealed once on however many nodes, and its seal holds over erasures in any order', async () => {
      const kid = await addTenant(db.database, 'sealed-erase');
      for (const id of ['s1', 's2', 's3', 's4', 's5'])
        await record(kid, id, { decidedAt: BEGIN, durable: id });
      for (const id of ['u1', 'u2']) await record(kid, id, { decidedAt: BEGIN + HOUR, durable: id });
      expect(await anchorVerdicts(db.database, kid, BEGIN + HOUR)).toBe(0);
      await erase(kid, { durables: ['u1'] });
      const nodes = [db.database, other, db.database];
      await Promise.all(nodes.map((node) => anchorVerdicts(node, kid, BEGIN + 2 * HOUR)));
      await erase(kid, { durables: ['s4', 's2'] });
      expect(await sealProblems(other, kid)).toEqual([]);
      expect(await anchorVerdicts(db.database, kid, BEGIN + 4 * HOUR)).toBe(1);
      await erase(kid, { durables: ['s1', 's3', 'u2'] });
      expect(await sealProblems(other, kid)).toEqual([]);
      const counts = await other.read('verdict_seals').where({ kid }).orderBy('hour').pluck('count');
      expect(counts).toEqual([5, 1]);
      await db.database.transaction((tx) => tx('decisions').where({ kid, request_id: 'req_s5' }).delete());
      expect(await sealProblems(other, kid)).toEqual([expect.stringContaining('1 of 5 verdicts')]);
    });

    it('what a clock that went back brings is filed after the seal, with its own time in it', async () => {
      const kid = await addTenant(db.database, 'went-back');
      const actor = { role: 'system', ref: 'test' } as const;
      const audit = (at: number) =>
        recordAudit(db.database, { kid, at, actor, action: 'dsar.exported', object: 'o', detail: {} });
      await record(kid, 'before', { decidedAt: BEGIN });
      await audit(BEGIN);
      for (const anchor of [anchorVerdicts, anchorAudit]) await anchor(db.database, kid, BEGIN + 2 * HOUR);
      await record(kid, 'late', { decidedAt: BEGIN + 1 });
      await audit(BEGIN + 1);
      expect(await sealProblems(other, kid)).toEqual([]);
      const row = await other.read('decisions').where({ kid, request_id: 'req_late' }).first();
      expect(Number(row.decided_at)).toBe(BEGIN + HOUR);
      expect(JSON.parse(row.verdict)).toMatchObject({ decidedAt: BEGIN + 1 });
    });

    it('retention leaves what is contested at this moment or held, a decision and its device', async () => {
      const kid = await addTenant(db.database, 'retention-race');
      for (const id of ['rc', 'rh', 'rb']) await record(kid, id, { decidedAt: NOW - 40 * DAY, durable: id });
      await db.database.transaction(async (tx) => {
        for (const durable of ['rh', 'rb'])
          await tx('legal_holds').insert({ kid, durable, basis: 'case 9', created_at: NOW });
        await linkRequest(tx, { kid, requestId: 'req_rb', principal: 'p', linkedAt: NOW - 40 * DAY });
      });
      const filing = await holdTransaction(db.database, async (tx) => {
        await lockHead(tx, kid);
        for (const id of ['rc', 'rb']) await insertContest(tx, WORDS, contestOn(kid, id, id));
      });
      const retained = deleteExpired(other, { kid, days: 30, now: NOW });
      await Promise.race([retained, othersWait(other)]);
      await filing.commit();
      expect(await retained).toMatchObject({ decisions: 0, links: 0, sightings: 0, visitorIndex: 0 });
      for (const table of ['decisions', 'sightings', 'visitor_index'])
        expect(await other.read(table).where({ kid }).orderBy('durable').pluck('durable')).toEqual([
          'rb',
          'rc',
          'rh',
        ]);
    });

    it('reads what is held by more links than a statement has parameters', async () => {
      const kid = await addTenant(db.database, 'linked');
      for (const id of ['l1', 'l2']) await record(kid, id, { durable: id });
      await file(contestOn(kid, 'l1', 'l1'));
      await override(kid, 'l1', 'req_l1');
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
