import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeAudit } from '../../../src/audit/store.ts';
import type { Database } from '../../../src/db/db.ts';
import { rowsOf } from '../../../src/db/sql.ts';
import { findDecision, tenantOfDecision } from '../../../src/ingest/decisions-store.ts';
import { findSummary } from '../../../src/ingest/summary-store.ts';
import { makeMasterKey } from '../../../src/keys/master-key.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { anchorAudit, anchorVerdicts } from '../../../src/log/anchors.ts';
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
  decryptRow,
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
import { storedIds } from '../../../src/rights/erase/find.ts';
import { placeHold, releaseHold } from '../../../src/rights/erase/hold.ts';
import { eraseRows } from '../../../src/rights/erase/rows.ts';
import { durableOfVisitor, linkedRequests, linkRequest } from '../../../src/rights/link-store.ts';
import { oldestDueDecision, planRetention, retain } from '../../../src/rights/retention/store.ts';
import {
  addTenant,
  holdTransaction,
  type MakeDatabase,
  othersWait,
  type TestDatabase,
} from '../../db/contract/database.ts';
import { makeEntry, NOW } from '../../support/make.ts';
import { makeRecorder } from '../../support/recorder.ts';
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

    const record = (kid: string, id: string, more: object = {}) =>
      makeRecorder(db.database).record(makeEntry({ kid, id, ...more }));
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
      const [seen, indexed] = await Promise.all(
        ['sightings', 'visitor_index'].map((table) =>
          other.read(table).where({ kid }).orderBy('durable').pluck('durable'),
        ),
      );
      expect(indexed).toEqual(seen);
      return seen as string[];
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
    const rule = { reason: 'r', role: 'dpo', by: 'rita', version: null, fourEyes: false } as const;

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
      const ruling = { ...rule, outcome: 'overturned', label: 'Rita' } as const;
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
      const written = (kid: string): Contest => ({
        ...contestOn(kid, 'w'),
        statement: 'stated words',
        question: 'asked words',
        reason: 'ruled words',
        proposal,
      });

      it('is sealed: no row holds a word of it', async () => {
        const kid = await addTenant(db.database, 'sealed-texts');
        await file(written(kid));
        const row = await rowOf(kid);
        expect(JSON.stringify(row)).not.toContain('words"');
        expect(row.sealed).toMatch(/^[A-Za-z0-9+/=]{80,}$/);
        expect(await findContest(other.read, WORDS, { kid, requestId: 'req_w' })).toEqual(written(kid));
        const open = decryptRow(row, WORDS);
        expect(open).toMatchObject({ statement: 'stated words', proposed_reason: 'proposed words' });
        expect(open).not.toHaveProperty('sealed');
      });

      it('of nothing is nothing', async () => {
        const kid = await addTenant(db.database, 'no-words');
        await file({ ...contestOn(kid, 'w'), statement: null });
        expect((await rowOf(kid)).sealed).toBeNull();
        await db.database.transaction((tx) => tx('contests').where({ kid }).delete());
        await file({ ...contestOn(kid, 'w'), statement: '' });
        expect((await findContest(other.read, WORDS, { kid, requestId: 'req_w' }))?.statement).toBe('');
      });

      it('opens for its own contest and under its own key alone; without a key nothing is written', async () => {
        const kid = await addTenant(db.database, 'moved-words');
        const [one, two] = [written(kid), { ...contestOn(kid, 'v'), statement: 'of another' }];
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
        const stranger = contestTextsOf(() => ({ wrapper: makeMasterKey(Buffer.alloc(32, 8), randomBytes) }));
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

    it('erases a device from every table, and others keep theirs', async () => {
      const kid = await addTenant(db.database, 'erase');
      const mine = { durable: 'mine' };
      const signals = [{ name: 'gpu', value: 'keyed' }];
      const summary = { signals, joint: 'all', expiresAt: NOW + DAY };
      await record(kid, 'm1', { ...mine, summary });
      await record(kid, 'm2', mine);
      await record(kid, 'o1', { durable: 'theirs', summary });
      expect(await findSummary(other, kid, 'req_o1', NOW)).toEqual({
        devices: 2,
        jointBits: 0,
        signals: [{ name: 'gpu', bits: 0 }],
      });
      await file(contestOn(kid, 'm1', 'mine'));
      await db.database.transaction((tx) =>
        insertOverride(tx, { kid, durable: 'mine', requestId: 'req_m1', at: NOW }),
      );
      await db.database.transaction((tx) =>
        linkRequest(tx, { kid, requestId: 'req_m2', principal: 'p', linkedAt: NOW }),
      );
      const [visitorId = ''] = (await other
        .read('visitor_index')
        .where({ kid, durable: 'mine' })
        .pluck('visitor_id')) as string[];
      const { counts, requests, others } = await erase(kid, { durables: ['mine'] });
      expect(counts).toMatchObject({
        sightings: { erased: 1 },
        'visitor-index': { erased: 1 },
        decisions: { erased: 2 },
        contests: { erased: 1 },
        override: { erased: 1 },
        links: { erased: 1 },
        'signal-summaries': { erased: 1 },
        'network-marks': { erased: 2 },
      });
      expect([...requests].sort()).toEqual(['req_m1', 'req_m2']);
      expect(others).toEqual(expect.arrayContaining([visitorId, 'mine']));
      expect(await durableOfVisitor(other, kid, visitorId)).toBeNull();
      for (const name of ['durable', 'request_id'] as const) {
        const left = new Set<string>();
        for await (const id of storedIds(other, kid, name)) left.add(id);
        expect([...left]).toEqual([name === 'durable' ? 'theirs' : 'req_o1']);
      }
      expect((await erase(kid, { durables: ['mine'] })).counts.decisions).toMatchObject({ erased: 0 });
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
      const { counts, others } = await erase(kid, {
        durables: ['durable-1'],
        requests: ['req_d2'],
        keep,
      });
      for (const scope of ['contests', 'decisions', 'override', 'visitor-index'] as const)
        expect(counts[scope]).toMatchObject({ erased: 0, retained: 1, basis: DEFENCE_BASIS });
      expect(counts.sightings).toMatchObject({ erased: 1 });
      // They stand in what is kept: nobody has to look for them, or to write the file anew.
      expect(others).toEqual([]);
      expect(await findDecision(other, kid, 'req_d2')).toMatchObject({ restricted: true });
    });

    describe('under legal holds', () => {
      const basis = 'case 11';
      const place = (kid: string, durable: string) =>
        db.database.transaction((tx) => placeHold(tx, { kid, durable, basis, createdAt: NOW }));

      it('keeps all rows of the held device, and not those of another that is erased with it', async () => {
        const kid = await addTenant(db.database, 'two-devices');
        await record(kid, 'kept', { durable: 'held' });
        await record(kid, 'went', { durable: 'free' });
        await db.database.transaction(async (tx) => {
          await linkRequest(tx, { kid, requestId: 'req_kept', principal: 'p', linkedAt: NOW });
          await insertOverride(tx, { kid, durable: 'held', requestId: 'req_kept', at: NOW });
        });
        await file(contestOn(kid, 'kept', 'held'));
        await place(kid, 'held');
        const gone = await erase(kid, { durables: ['held', 'free'], linksOf: 'p' });
        for (const scope of ['decisions', 'sightings', 'visitor-index'] as const)
          expect(gone.counts[scope], scope).toEqual({ erased: 1, retained: 1, basis });
        for (const scope of ['contests', 'override', 'links'] as const)
          expect(gone.counts[scope], scope).toEqual({ erased: 0, retained: 1, basis });
        expect(gone).toMatchObject({ requests: ['req_went'], held: ['held'] });
        expect(gone.others).toContain('free');
        expect(await durablesLeft(kid)).toEqual(['held']);
        expect(await linkedRequests(other, kid, 'p')).toEqual(['req_kept']);
      });

      it('keeps a request of the held device that is erased alone, and a forget’s too', async () => {
        const kid = await addTenant(db.database, 'held-alone');
        await record(kid, 'ha');
        await place(kid, 'durable-1');
        for (const keep of [
          { openContests: false, override: false },
          { openContests: true, override: true },
        ]) {
          const { counts } = await erase(kid, { requests: ['req_ha'], keep });
          expect(counts.decisions).toEqual({ erased: 0, retained: 1, basis });
        }
        await db.database.transaction((tx) => releaseHold(tx, { kid, durable: 'durable-1' }));
        expect((await erase(kid, { requests: ['req_ha'] })).counts.decisions).toEqual({
          erased: 1,
          retained: 0,
        });
      });
    });

    it('reaches what hangs on a contest whose decision retention took before', async () => {
      const kid = await addTenant(db.database, 'orphan');
      await file(contestOn(kid, 'gone', 'mine'));
      const told = { kid, webhook: 'w', principal: 'ref of req_gone', at: NOW, sealed: 's' };
      await db.database.transaction(async (tx) => {
        await enqueue(tx, [{ ...told, event: 'contest.resolved', requestId: null }]);
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
      const recorder = makeRecorder(db.database);
      await Promise.all(ids.map((id) => recorder.record(makeEntry({ kid, id }))));
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

    it('retention takes what is old, and not under an open contest', async () => {
      const kid = await addTenant(db.database, 'retention');
      const old = { decidedAt: NOW - 40 * DAY };
      await record(kid, 'r1', { ...old, durable: 'r1' });
      await record(kid, 'r2', { ...old, durable: 'r2' });
      await record(kid, 'r3', { durable: 'r3' });
      await file(contestOn(kid, 'r2', 'r2'));
      expect(await oldestDueDecision(other, kid, NOW)).toBe(NOW - 40 * DAY);
      await anchorVerdicts(db.database, kid, NOW);
      const linked = { kid, principal: 'p', linkedAt: NOW - 40 * DAY };
      await db.database.transaction(async (tx) => {
        for (const requestId of ['req_r1', 'req_r2']) await linkRequest(tx, { ...linked, requestId });
      });
      const rules = { kid, days: 30, now: NOW };
      const going = {
        decisions: 1,
        contests: 0,
        links: 1,
        sightings: 1,
        credentials: 0,
        visitorIndex: 1,
        audit: 0,
      };
      expect(await planRetention(other, rules)).toEqual(going);
      expect(await planRetention(other, rules)).toEqual(going);
      expect(await retain(db.database, rules)).toEqual(going);
      expect(new Set(Object.values(await planRetention(other, rules)))).toEqual(new Set([0]));
      expect(await retain(db.database, rules)).toMatchObject({ decisions: 0, sightings: 0, visitorIndex: 0 });
      expect(await findDecision(other, kid, 'req_r2')).not.toBeNull();
      expect(await linkedRequests(other, kid, 'p')).toEqual(['req_r2']);
      expect(await durablesLeft(kid)).toEqual(['r2', 'r3']);
      expect(await oldestDueDecision(other, kid, NOW + 1)).toBe(NOW);
      expect(await sealProblems(other, kid)).toEqual([]);
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
      const retained = retain(other, { kid, days: 30, now: NOW });
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
      const retained = retain(other, { kid, days: 30, now: NOW });
      await Promise.race([retained, othersWait(other)]);
      await filing.commit();
      expect(await retained).toMatchObject({ links: 0, sightings: 0, visitorIndex: 0 });
      expect(await durablesLeft(kid)).toEqual(['dr']);
    });

    it('retention drops what a resolved contest names with it, unless a hold keeps the contest', async () => {
      const kid = await addTenant(db.database, 'late-contest');
      const resolvedAt = NOW + 20 * DAY;
      const ruling = { outcome: 'upheld', reason: 'looked', role: 'reviewer', by: 'r' } as const;
      for (const id of ['free', 'kept']) {
        await record(kid, id, { durable: id });
        const contest = contestOn(kid, id, id);
        const resolved = resolveContest(contest, { ...ruling, version: null, fourEyes: false }, resolvedAt);
        await file({ ...resolved, statement: 'words' });
        await db.database.transaction((tx) =>
          linkRequest(tx, { kid, requestId: `req_${id}`, principal: 'p', linkedAt: NOW }),
        );
      }
      const hold = { kid, durable: 'kept', basis: 'case 9', created_at: NOW };
      await db.database.transaction((tx) => tx('legal_holds').insert(hold));
      const at = (now: number) => ({ kid, days: 30, now });
      const none = { contests: 0, links: 0, sightings: 0, visitorIndex: 0 };
      expect(await retain(db.database, at(resolvedAt + 29 * DAY))).toMatchObject({ decisions: 1, ...none });
      const later = at(resolvedAt + 31 * DAY);
      const one = { contests: 1, links: 1, sightings: 1, visitorIndex: 1 };
      expect(await planRetention(other, later)).toMatchObject(one);
      expect(await retain(db.database, later)).toMatchObject(one);
      expect(await durablesLeft(kid)).toEqual(['kept']);
      expect(await linkedRequests(other, kid, 'p')).toEqual(['req_kept']);
    });

    it('reads what is held by more links than a statement has parameters', async () => {
      const kid = await addTenant(db.database, 'linked');
      for (const id of ['l1', 'l2']) await record(kid, id, { durable: id });
      await file(contestOn(kid, 'l1', 'l1'));
      const override = { kid, durable: 'l1', requestId: 'req_l1', at: NOW };
      await db.database.transaction((tx) => insertOverride(tx, override));
      const others = Array.from({ length: 70_000 }, (_, i) => `req_no${i}`);
      const linked = [...others, 'req_l1', 'req_l2'];
      const reach = { durable: null, linked };
      expect(await countDecisions(other, kid, reach)).toBe(2);
      expect(await readContests(other, WORDS, kid, reach)).toMatchObject([{ requestId: 'req_l1' }]);
      expect(await readOverride(other, kid, reach)).toMatchObject({ requestId: 'req_l1' });
      const both = { durable: 'l1', linked: ['req_l1', 'req_l2'] };
      expect(await countDecisions(other, kid, both)).toBe(2);
      expect(await readContests(other, WORDS, kid, both)).toHaveLength(1);
      expect(await countDecisions(other, kid, { durable: null, linked: [] })).toBe(0);
    });

    it('finds the messages about a request by an index', async () => {
      const plan = await db.database.transaction(async (tx) => {
        const sqlite = db.database.kind === 'sqlite';
        if (!sqlite) await tx.raw('SET LOCAL enable_seqscan = off');
        const query = tx('webhook_outbox').where({ kid: 'k' }).whereIn('request_id', ['a', 'b']).delete();
        return tx.raw(`EXPLAIN ${sqlite ? 'QUERY PLAN ' : ''}${query.toQuery()}`);
      });
      expect(JSON.stringify(rowsOf(plan))).toContain('webhook_outbox_request');
    });

    it('seals the audit log', async () => {
      const kid = await addTenant(db.database, 'audited');
      const actor = { role: 'dpo', ref: 'dora' } as const;
      const note = (at: number) =>
        db.database.transaction((tx) =>
          writeAudit(tx, { kid, at, actor, action: 'subject.erased', object: null, detail: { at } }),
        );
      for (const i of [1, 2, 3]) await note(NOW + i);
      expect(
        await Promise.all([anchorAudit(db.database, kid, NOW + DAY), anchorAudit(other, kid, NOW + DAY)]),
      ).toContain(1);
      expect(await sealProblems(other, kid)).toEqual([]);
      await db.database.transaction((tx) => tx('audit_log').where({ kid }).limit(1).update({ detail: '{}' }));
      expect(await sealProblems(other, kid)).not.toEqual([]);
    });

    it('knows whose a decision is, over all tenants', async () => {
      const kid = await addTenant(db.database, 'whose');
      await record(kid, 'whose-1');
      expect(await tenantOfDecision(other, 'req_whose-1')).toBe(kid);
      expect(await tenantOfDecision(other, 'req_nobody')).toBeNull();
    });
  });
}
