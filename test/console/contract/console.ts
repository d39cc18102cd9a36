import { describe, expect, it } from 'vitest';
import {
  deleteConsoleSession,
  findConsoleSession,
  insertConsoleSession,
  listConsoleSessions,
  listDrafts,
  purgeConsole,
  saveDraft,
  touchConsoleSession,
} from '../../../src/console/session-store.ts';
import { DAY, HOUR, MINUTE } from '../../../src/lib/clock.ts';
import { type Contest, fileContest } from '../../../src/rights/contests/contest.ts';
import { openByDue, queueCounts, queuePage, readWorkload } from '../../../src/rights/contests/queue-store.ts';
import {
  cursorOf,
  type QueueCursor,
  type QueueFilter,
  type QueueQuery,
} from '../../../src/rights/contests/record.ts';
import { insertContest, updateContest } from '../../../src/rights/contests/store.ts';
import {
  countTrail,
  readDeviceContests,
  readDeviceTrail,
  readOldestDecision,
} from '../../../src/rights/dsar/store.ts';
import { readTallies, readVisits, talliedUntil, tally } from '../../../src/rights/tally-store.ts';
import { addKeyTraffic, purgeKeyTraffic, readKeyTraffic } from '../../../src/tenants/key-use-store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { WORDS } from '../../rights/contract/contest-texts.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

interface CaseParts {
  readonly i: number;
  readonly filedAt?: number;
  readonly class?: string;
  readonly durable?: string;
  readonly claim?: { readonly by: string; readonly label: string; readonly until: number };
  readonly resolvedAt?: number;
}

export function consoleContract(make: MakeDatabase): void {
  describe('what the console keeps and reads', () => {
    const { db, other } = twoNodes(make);

    async function addCase(kid: string, parts: CaseParts): Promise<string> {
      const contestId = `con_${kid}_${String(parts.i).padStart(4, '0')}`;
      const filed = fileContest(
        {
          kid,
          contestId,
          requestId: `req_${kid}_${parts.i}`,
          durable: parts.durable ?? `d-${parts.i}`,
          class: parts.class ?? 'unknown',
          filedBy: 'somebody',
          statement: null,
        },
        parts.filedAt ?? NOW + parts.i * MINUTE,
      );
      await db.database.transaction(async (tx) => {
        await insertContest(tx, WORDS, filed);
        const { claim = null, resolvedAt = null } = parts;
        const resolved =
          resolvedAt === null
            ? {}
            : {
                status: 'resolved' as const,
                outcome: 'upheld' as const,
                resolvedAt,
                resolvedBy: { role: 'reviewer' as const, ref: 'r' },
              };
        await updateContest(tx, WORDS, { ...filed, claim, ...resolved });
      });
      return contestId;
    }

    const session = (kid: string, hash: string, over: object = {}) => ({
      hash,
      kid,
      actor: 'actor',
      label: 'Ada',
      roles: ['reviewer', 'dpo'],
      provider: null,
      idToken: 'sealed token',
      csrf: 'csrf',
      createdAt: NOW,
      seenAt: NOW,
      expiresAt: NOW + 8 * HOUR,
      ...over,
    });

    it('a session is ended by its own tenant alone, a draft is its writer’s, and both go with their time', async () => {
      const kid = await addTenant(db.database, 'kept');
      const contestId = await addCase(kid, { i: 1 });
      await db.database.transaction(async (tx) => {
        await insertConsoleSession(tx, session(kid, 's-1'));
        await insertConsoleSession(tx, session(kid, 's-old', { expiresAt: NOW - 1 }));
      });
      expect(await findConsoleSession(other, 's-1')).toEqual(session(kid, 's-1'));
      await touchConsoleSession(db.database, 's-1', NOW + 5);
      const listHashes = async (since: number) =>
        (await listConsoleSessions(other, kid, since, 10)).map((one) => one.hash);
      expect([await listHashes(NOW), await listHashes(NOW + 5)]).toEqual([['s-1'], []]);
      const draft = { kid, actor: 'a', contestId, kind: 'resolve' as const, outcome: 'upheld', at: NOW };
      expect(await saveDraft(db.database, { ...draft, kid: 'another', text: 'one' })).toBe(false);
      for (const text of ['one', 'two']) expect(await saveDraft(db.database, { ...draft, text })).toBe(true);
      const drafts = (actor: string) => listDrafts(other, kid, actor, contestId);
      expect(await drafts('a')).toEqual([{ kind: 'resolve', outcome: 'upheld', text: 'two' }]);
      expect(await drafts('b')).toEqual([]);
      await purgeConsole(db.database, NOW, NOW);
      expect([await findConsoleSession(other, 's-old'), await drafts('a')]).toMatchObject([null, [{}]]);
      await purgeConsole(db.database, NOW, NOW + 1);
      expect(await drafts('a')).toEqual([]);
      const end = (of: string) => db.database.transaction((tx) => deleteConsoleSession(tx, of, 's-1'));
      expect([await end('another'), await end(kid), await end(kid)]).toEqual([false, true, false]);
    });

    const OPEN: QueueQuery = {
      status: 'open',
      filter: {},
      order: 'due',
      cursor: null,
      isBackward: false,
      limit: 100,
    };
    const numbersOf = (contests: readonly Contest[]) =>
      contests.map(({ contestId }) => Number(contestId.slice(-4)));

    it('the queue by due or filing date, in pages that meet without a gap in both directions', async () => {
      const kid = await addTenant(db.database, 'queue');
      const until = NOW + HOUR;
      for (let i = 0; i < 9; i += 1) {
        const by = ['me', null, 'you'][i % 3];
        await addCase(kid, {
          i,
          ...(by ? { claim: { by, label: by, until: i === 8 ? NOW - 1 : until } } : {}),
        });
      }
      await addCase('elsewhere', { i: 1 });
      const viewer = { kid, me: 'me', now: NOW };
      const read = async (query: Partial<QueueQuery>) =>
        queuePage(other, WORDS, viewer, { ...OPEN, ...query });
      const numbers = async (query: Partial<QueueQuery>) => numbersOf((await read(query)).contests);
      expect(await numbers({})).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
      expect(await numbers({ order: 'newest' })).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 0]);
      expect(await numbers({ order: 'oldest' })).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
      expect(await numbers({ list: 'waiting' })).toEqual([0, 3, 6]);
      // Case 8 was claimed, and the claim has expired.
      expect(await numbers({ holder: 'yo' })).toEqual([2, 5]);
      expect(await numbers({ holder: 'nobody' })).toEqual([]);
      for (const order of ['due', 'newest'] as const) {
        const whole = await numbers({ order });
        const forward: number[] = [];
        let last: Contest | undefined;
        for (let place = 0; ; place += 2) {
          const cursor: QueueCursor | null = last ? cursorOf({ status: 'open', order }, last) : null;
          const page = await read({ order, cursor, limit: 2 });
          if (page.contests.length === 0) break;
          expect([page.place, page.total]).toEqual([place, 9]);
          forward.push(...numbersOf(page.contests));
          last = page.contests.at(-1);
        }
        expect(forward).toEqual(whole);
        const cursor = cursorOf({ status: 'open', order }, last!);
        const before = await read({ order, cursor, isBackward: true, limit: 3 });
        expect([numbersOf(before.contests), before.place]).toEqual([whole.slice(5, 8), 5]);
      }
      const counts = { open: 9, overdue: 0, week: 0, waiting: 3, asked: 0, resolved: 0 };
      expect(await queueCounts(other, viewer)).toEqual(counts);
      expect(await readWorkload(other, kid, NOW)).toMatchObject([
        { actor: 'me', label: 'me', claimed: 3 },
        { actor: 'you', label: 'you', claimed: 2 },
      ]);
    });

    it('filters by class, by age and by due date; resolved ones the latest first', async () => {
      const kid = await addTenant(db.database, 'filters');
      await addCase(kid, { i: 1, filedAt: NOW - 40 * DAY, class: 'human' });
      await addCase(kid, { i: 2, filedAt: NOW - 10 * DAY });
      await addCase(kid, { i: 3, filedAt: NOW });
      for (const i of [4, 5, 6]) await addCase(kid, { i, resolvedAt: NOW + i });
      const viewer = { kid, me: 'me', now: NOW };
      const found = async (filter: QueueFilter) =>
        numbersOf((await queuePage(other, WORDS, viewer, { ...OPEN, filter, limit: 10 })).contests);
      expect(await found({ class: 'human' })).toEqual([1]);
      expect(await found({ filedBefore: NOW - 10 * DAY + 1 })).toEqual([1, 2]);
      expect(await found({ filedBefore: NOW - 10 * DAY })).toEqual([1]);
      expect(await found({ dueBefore: NOW })).toEqual([1]);
      const pageAfter = async (cursor: QueueCursor | null) =>
        (await queuePage(other, WORDS, viewer, { ...OPEN, status: 'resolved', cursor, limit: 2 })).contests;
      const resolved = await pageAfter(null);
      expect(resolved.map((one) => one.resolvedAt)).toEqual([NOW + 6, NOW + 5]);
      const next = await pageAfter({ at: NOW + 5, contestId: resolved[1]!.contestId });
      expect(next.map((one) => one.resolvedAt)).toEqual([NOW + 4]);
      const due = await openByDue(other, kid, [
        [0, NOW],
        [NOW, NOW + 30 * DAY],
        [NOW + 30 * DAY, Number.MAX_SAFE_INTEGER],
      ]);
      expect(due).toEqual([1, 1, 1]);
    });

    it('filing at the end of a short month loses nobody to the bound on the due date', async () => {
      const kid = await addTenant(db.database, 'february');
      // A contest of 30 January 23:00 is due on 28 February 23:00, one of 31 January 01:00 already at 01:00.
      const early = Date.UTC(2026, 0, 30, 23);
      await addCase(kid, { i: 1, filedAt: early });
      const filter = { filedBefore: Date.UTC(2026, 0, 31, 1) };
      const viewer = { kid, me: 'me', now: NOW };
      const { contests } = await queuePage(other, WORDS, viewer, { ...OPEN, filter, limit: 10 });
      expect(contests).toHaveLength(1);
    });

    it('a device’s trail, its contests and the oldest decision', async () => {
      const kid = await addTenant(db.database, 'trail');
      const recorder = createRecorder(db.database);
      for (const i of [1, 2, 3]) {
        const verdict = { needsAttestation: i === 3 };
        const device = { durable: 'dev', decidedAt: NOW + i };
        await recorder.record(createEntry({ kid, id: `trail${i}`, ...device, verdict }));
      }
      await recorder.idle();
      const trail = await readDeviceTrail(other, kid, 'dev', 2);
      expect(trail.map(({ requestId, needsAttestation }) => [requestId, needsAttestation])).toEqual([
        ['req_trail3', true],
        ['req_trail2', false],
      ]);
      expect(await countTrail(other, kid, 'dev', 10)).toBe(3);
      expect(await countTrail(other, kid, 'dev', 1)).toBe(2);
      expect(await readOldestDecision(other, kid)).toBe(NOW + 1);
      expect(await readOldestDecision(other, 'nobody')).toBeNull();
      const contestId = await addCase(kid, { i: 1, durable: 'dev' });
      expect(await readDeviceContests(other, kid, 'dev', 5)).toMatchObject([{ contestId }]);
    });

    it('verdicts are counted once an hour and class, on two nodes at once, and not before they are settled', async () => {
      const kid = await addTenant(db.database, 'tally');
      const recorder = createRecorder(db.database);
      const hour = Math.floor(NOW / HOUR) * HOUR;
      const entries = [
        [hour, 'human'],
        [hour + 1, 'unknown'],
        [hour + HOUR - 1, 'human'],
        [hour + HOUR, 'human'],
      ] as const;
      for (const [at, name] of entries) {
        const verdict = { class: name };
        await recorder.record(createEntry({ kid, id: `tally${at}`, decidedAt: at, verdict }));
      }
      await recorder.idle();
      // The last two are less than a minute old, so a batch with such rows may still commit.
      const early = hour + HOUR + 30_000;
      await Promise.all([tally(db.database, kid, early), tally(other, kid, early)]);
      expect((await readTallies(other, kid, 'verdict', hour)).map(({ n }) => n)).toEqual([1, 1]);
      const nextHour = hour + HOUR + MINUTE;
      await Promise.all([tally(db.database, kid, nextHour), tally(other, kid, nextHour)]);
      expect(await readTallies(other, kid, 'verdict', hour)).toEqual([
        { hour, name: 'human', n: 2 },
        { hour, name: 'unknown', n: 1 },
        { hour: hour + HOUR, name: 'human', n: 1 },
      ]);
      await tally(db.database, kid, nextHour + 1);
      expect((await readTallies(other, kid, 'verdict', hour)).map(({ n }) => n)).toEqual([2, 1, 1]);
      expect(await talliedUntil(other, kid)).toBe(nextHour + 1 - MINUTE);
      expect(await talliedUntil(other, 'nobody')).toBeNull();
    });

    it('traffic of key generations adds up by day and is forgotten', async () => {
      const kid = await addTenant(db.database, 'traffic');
      const use = { of: 'key', kid, since: NOW, generation: 1, count: 3, lastAt: NOW } as const;
      await Promise.all([addKeyTraffic(db.database, [use]), addKeyTraffic(other, [use])]);
      const later = { ...use, lastAt: NOW + DAY };
      await addKeyTraffic(db.database, [later, { ...use, generation: 2, count: 1 }]);
      const read = async (since: number) =>
        [...(await readKeyTraffic(other, kid, since))].sort((a, b) => a.generation - b.generation);
      expect(await read(NOW)).toEqual([
        { generation: 1, bundles: 9, lastAt: NOW + DAY },
        { generation: 2, bundles: 1, lastAt: NOW },
      ]);
      expect(await read(NOW + DAY)).toEqual([{ generation: 1, bundles: 3, lastAt: NOW + DAY }]);
      // Visits are counted on two nodes, and have no key.
      const visit = { of: 'visit', kid, since: NOW, visit: 'all', count: 2, lastAt: NOW } as const;
      await Promise.all([addKeyTraffic(db.database, [visit]), addKeyTraffic(other, [visit])]);
      await addKeyTraffic(db.database, [{ ...visit, count: 1, visit: 'gpc' }]);
      expect(await readVisits(other, kid, NOW - DAY)).toEqual({ all: 4, gpc: 1, judged: 0, workerless: 0 });
      expect(await readVisits(other, kid, NOW + DAY)).toMatchObject({ all: 0, gpc: 0 });
      expect(await read(NOW)).toHaveLength(2);
      await purgeKeyTraffic(db.database, NOW + 62 * DAY);
      expect(await read(0)).toEqual([]);
    });
  });
}
