import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeAudit } from '../../../src/audit/store.ts';
import type { Database } from '../../../src/db/db.ts';
import { rowsOf } from '../../../src/db/sql.ts';
import { findDecision, tenantOfDecision } from '../../../src/ingest/decision-store.ts';
import { findSummary } from '../../../src/ingest/summary-store.ts';
import { makeMasterKey } from '../../../src/keys/master-key.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { lockHead } from '../../../src/log/append-store.ts';
import { anchorAudit } from '../../../src/log/audit-anchor-store.ts';
import { anchorVerdicts } from '../../../src/log/verdict-anchor-store.ts';
import { type Contest, fileContest, resolveContest } from '../../../src/rights/contests/contest.ts';
import { contestTextsOf } from '../../../src/rights/contests/contest-text.ts';
import {
  type ContestRow,
  findContest,
  insertContest,
  insertOverride,
  listContests,
  lockContest,
  openRow,
  updateContest,
} from '../../../src/rights/contests/store.ts';
import { countDecisions, heldContests, heldOverride } from '../../../src/rights/dsar/store.ts';
import { DEFENCE_BASIS, type Scope } from '../../../src/rights/erase/erasure.ts';
import type { RowTarget } from '../../../src/rights/erase/find-store.ts';
import { heldIds } from '../../../src/rights/erase/find-store.ts';
import {
  allHolds,
  dueErasures,
  listHolds,
  placeHold,
  releaseHold,
} from '../../../src/rights/erase/hold-store.ts';
import { eraseRows } from '../../../src/rights/erase/store.ts';
import { durableOfVisitor, linkedRequests, linkRequest } from '../../../src/rights/link-store.ts';
import { oldestDueDecision, planRetention, retain } from '../../../src/rights/retention/store.ts';
import { enqueue } from '../../../src/webhooks/store.ts';
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
      requestedBy: 'dpo' as const,
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
        const open = openRow(row, WORDS);
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
      const summary = { signals, joint: 'all', newDevice: true, counts: true, expiresAt: NOW + DAY };
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
      const { counts, requests, visitorIds } = await erase(kid, { durables: ['mine'] });
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
      expect(visitorIds).toHaveLength(1);
      expect(await durableOfVisitor(other, kid, visitorIds[0] ?? '')).toBeNull();
      for (const name of ['durable', 'request_id'] as const) {
        const left = new Set<string>();
        for await (const id of heldIds(other, kid, name)) left.add(id);
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
      const { counts, devices, visitorIds } = await erase(kid, {
        durables: ['durable-1'],
        requests: ['req_d2'],
        keep,
      });
      for (const scope of ['contests', 'decisions', 'override', 'visitor-index'] as const)
        expect(counts[scope]).toMatchObject({ erased: 0, retained: 1, basis: DEFENCE_BASIS });
      expect(counts.sightings).toMatchObject({ erased: 1 });
      // They stand in what is kept: nobody has to look for them, or to write the file anew.
      expect({ devices, visitorIds }).toEqual({ devices: [], visitorIds: [] });
      expect(await findDecision(other, kid, 'req_d2')).toMatchObject({ restricted: true });
    });

    it('leaves alone what a legal hold keeps, and says why', async () => {
      const kid = await addTenant(db.database, 'held');
      await record(kid, 'h1');
      const hold = { kid, durable: 'durable-1', scope: 'decisions', basis: 'case 7', created_at: NOW };
      await db.database.transaction((tx) => tx('legal_holds').insert(hold));
      const { counts, requests } = await erase(kid, { durables: ['durable-1'] });
      expect(counts.decisions).toEqual({ erased: 0, retained: 1, basis: 'case 7' });
      expect(requests).toEqual([]);
      expect(await findDecision(other, kid, 'req_h1')).not.toBeNull();
    });

    it('leaves a held decision to the hold, by its request alone too', async () => {
      const kid = await addTenant(db.database, 'held-alone');
      await record(kid, 'ha');
      const hold = { kid, durable: 'durable-1', scope: 'decisions', basis: 'case 8', created_at: NOW };
      await db.database.transaction((tx) => tx('legal_holds').insert(hold));
      const { counts } = await erase(kid, { requests: ['req_ha'] });
      expect(counts.decisions).toEqual({ erased: 0, retained: 1, basis: 'case 8' });
      expect(await findDecision(other, kid, 'req_ha')).not.toBeNull();
    });

    describe('under legal holds', () => {
      const place = (kid: string, durable: string, scope: Scope, basis = 'case 11') =>
        db.database.transaction((tx) => placeHold(tx, { kid, durable, scope, basis, createdAt: NOW }));
      const release = (kid: string, durable: string, scope: Scope, at = NOW + 1) =>
        db.database.transaction((tx) => releaseHold(tx, { kid, durable, scope }, at));
      const waiting = (kid: string) => other.read('held_erasures').where({ kid });

      it('keeps the rows of the held device, and not those of another that is erased with it', async () => {
        const kid = await addTenant(db.database, 'two-devices');
        await record(kid, 'kept', { durable: 'held' });
        await record(kid, 'went', { durable: 'free' });
        await place(kid, 'held', 'decisions');
        await place(kid, 'held', 'visitor-index');
        const gone = await erase(kid, { durables: ['held', 'free'] });
        expect(gone.counts.decisions).toEqual({ erased: 1, retained: 1, basis: 'case 11' });
        expect(gone.counts['visitor-index']).toEqual({ erased: 1, retained: 1, basis: 'case 11' });
        expect(gone).toMatchObject({ requests: ['req_went'], devices: ['free'], waits: true });
        expect(gone.visitorIds).toHaveLength(1);
        expect(await findDecision(other, kid, 'req_kept')).not.toBeNull();
        expect(await findDecision(other, kid, 'req_went')).toBeNull();
        expect(await other.read('sightings').where({ kid })).toEqual([]);
      });

      it('counts what it keeps once', async () => {
        const kid = await addTenant(db.database, 'once');
        await record(kid, 'o1', { durable: 'd' });
        await file(contestOn(kid, 'o1', 'd'));
        const override = { kid, durable: 'd', requestId: 'req_o1', at: NOW };
        await db.database.transaction((tx) => insertOverride(tx, override));
        await place(kid, 'd', 'contests');
        await place(kid, 'd', 'override');
        const { counts, requests } = await erase(kid, { durables: ['d'] });
        expect(counts.contests).toEqual({ erased: 0, retained: 1, basis: 'case 11' });
        expect(counts.override).toEqual({ erased: 0, retained: 1, basis: 'case 11' });
        expect(counts.decisions).toEqual({ erased: 1, retained: 0 });
        // A row that is kept names it still.
        expect(requests).toEqual([]);
      });

      it('an erasure of single requests waits too, and is due with the release, for them alone', async () => {
        const kid = await addTenant(db.database, 'waits');
        for (const id of ['w1', 'w2']) await record(kid, id, { durable: 'd' });
        await place(kid, 'd', 'decisions');
        await erase(kid, { requests: ['req_w1'], requestedBy: 'subject' });
        expect(await listHolds(other, kid, { limit: 9 })).toMatchObject([{ requestedBy: 'subject' }]);
        expect(await dueErasures(other, NOW + DAY, { kid, durable: 'd' })).toEqual([]);
        // Again, as somebody else: one row, and who asked last is told.
        await erase(kid, { requests: ['req_w1'], requestedBy: 'dpo' });
        expect(await release(kid, 'd', 'decisions')).toEqual({ waited: true });
        expect(await dueErasures(other, NOW)).toEqual([]);
        const due = await dueErasures(other, NOW + 1, { kid, durable: 'd' });
        expect(due).toEqual([{ kid, durable: 'd', requestedBy: 'dpo', whole: false, requests: ['req_w1'] }]);
        expect(await erase(kid, { requests: ['req_w1'] })).toMatchObject({
          requests: ['req_w1'],
          waits: false,
        });
        expect(await waiting(kid)).toEqual([]);
        expect(await findDecision(other, kid, 'req_w2')).not.toBeNull();
      });

      it('names no request of which nothing is kept', async () => {
        const kid = await addTenant(db.database, 'unnamed');
        await record(kid, 'u1', { durable: 'd' });
        await place(kid, 'd', 'contests');
        expect(await erase(kid, { requests: ['req_u1'] })).toMatchObject({
          requests: ['req_u1'],
          waits: false,
        });
        expect(await waiting(kid)).toEqual([]);
      });

      it('waits for the other hold of the device where there are two', async () => {
        const kid = await addTenant(db.database, 'two-holds');
        await record(kid, 't1', { durable: 'd' });
        await db.database.transaction((tx) =>
          linkRequest(tx, { kid, requestId: 'req_t1', principal: 'p', linkedAt: NOW }),
        );
        await place(kid, 'd', 'decisions');
        await place(kid, 'd', 'links');
        await erase(kid, { requests: ['req_t1'] });
        await release(kid, 'd', 'decisions');
        const { counts } = await erase(kid, { requests: ['req_t1'] });
        expect(counts).toMatchObject({ decisions: { erased: 1 }, links: { retained: 1 } });
        // The link names no device: that it is held is known by what was noted.
        expect(await erase(kid, { requests: ['req_t1'] })).toMatchObject({
          counts: { links: { retained: 1 } },
        });
        expect(await dueErasures(other, NOW + DAY, { kid, durable: 'd' })).toEqual([]);
        await release(kid, 'd', 'links');
        expect(await erase(kid, { requests: ['req_t1'] })).toMatchObject({
          counts: { links: { erased: 1 } },
        });
        expect(await waiting(kid)).toEqual([]);
      });

      it('the whole device waits in place of its requests; a forget makes nothing wait', async () => {
        const kid = await addTenant(db.database, 'whole');
        await record(kid, 'x1', { durable: 'd' });
        await place(kid, 'd', 'decisions');
        await erase(kid, { durables: ['d'], keep: { openContests: true, override: true } });
        expect(await release(kid, 'd', 'decisions')).toEqual({ waited: false });
        await place(kid, 'd', 'decisions');
        await erase(kid, { requests: ['req_x1'] });
        await erase(kid, { durables: ['d'] });
        expect(await waiting(kid)).toEqual([]);
        await release(kid, 'd', 'decisions');
        expect(await dueErasures(other, NOW + 1, { kid, durable: 'd' })).toEqual([
          { kid, durable: 'd', requestedBy: 'dpo', whole: true, requests: [] },
        ]);
        expect(await release(kid, 'd', 'decisions')).toBeNull();
      });

      it('a device that waits takes along what only its requests lead to', async () => {
        const kid = await addTenant(db.database, 'whole-links');
        await record(kid, 'l1', { durable: 'd' });
        await db.database.transaction((tx) =>
          linkRequest(tx, { kid, requestId: 'req_l1', principal: 'p', linkedAt: NOW }),
        );
        await place(kid, 'd', 'links');
        expect((await erase(kid, { durables: ['d'] })).counts.links).toMatchObject({ retained: 1 });
        await release(kid, 'd', 'links');
        for (const { whole, requests } of await dueErasures(other, NOW + 1, { kid, durable: 'd' }))
          await erase(kid, { durables: whole ? ['d'] : [], requests });
        expect(await linkedRequests(other, kid, 'p')).toEqual([]);
        expect(await waiting(kid)).toEqual([]);
      });

      it('lists more holds than a page has', async () => {
        const kid = await addTenant(db.database, 'many-holds');
        const rows = Array.from({ length: 1203 }, (_, i) => ({
          kid,
          durable: `d${i % 7}-${i}`,
          scope: 'decisions',
          basis: 'b',
          created_at: NOW + Math.floor(i / 5),
        }));
        await db.database.transaction(async (tx) => tx.batchInsert('legal_holds', rows, 100));
        const found: string[] = [];
        for await (const { durable } of allHolds(other, kid)) found.push(durable);
        expect(found).toHaveLength(rows.length);
        expect(new Set(found).size).toBe(rows.length);
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
      const hold = { kid, durable: 'rh', scope: 'decisions', basis: 'case 9', created_at: NOW };
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
      const hold = { kid, durable: 'dr', scope: 'decisions', basis: 'case 9', created_at: NOW };
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
      const hold = { kid, durable: 'kept', scope: 'contests', basis: 'case 9', created_at: NOW };
      await db.database.transaction((tx) => tx('legal_holds').insert(hold));
      const at = (now: number) => ({ kid, days: 30, now });
      const none = { contests: 0, links: 0, sightings: 0, visitorIndex: 0 };
      expect(await retain(db.database, at(resolvedAt + 29 * DAY))).toMatchObject({ decisions: 2, ...none });
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
      expect(await heldContests(other, WORDS, kid, reach)).toMatchObject([{ requestId: 'req_l1' }]);
      expect(await heldOverride(other, kid, reach)).toMatchObject({ requestId: 'req_l1' });
      const both = { durable: 'l1', linked: ['req_l1', 'req_l2'] };
      expect(await countDecisions(other, kid, both)).toBe(2);
      expect(await heldContests(other, WORDS, kid, both)).toHaveLength(1);
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
