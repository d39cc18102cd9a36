import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../../src/lib/clock.ts';
import { createCaseByKeyService } from '../../../src/rights/contests/case-by-key-service.ts';
import { notifyDueContests, notifyUnfinishedErasures } from '../../../src/rights/notices-store.ts';
import { reachOfRequests } from '../../../src/rights/subject.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { noteStatements } from '../../support/database.ts';
import { NOW } from '../../support/make.ts';
import { started } from '../../support/started.ts';
import { openHouse } from './contest-texts.ts';

/** Contests without an account, and the notices that time brings, by both databases. */
export function casesContract(make: MakeDatabase): void {
  describe('cases and notices', () => {
    const db = started(make);

    async function house(kid: string) {
      const opened = await openHouse(db.database, kid, ['w1']);
      const { deps, contests, decide, now, setClock } = opened;
      const markNetwork = (network: string): string => `${network} ${Math.floor(now() / DAY)}`;
      const cases = createCaseByKeyService({
        ...deps,
        contests,
        serverSecret: Buffer.alloc(32, 9),
        markNetwork,
      });
      const events = (): Promise<string[]> =>
        db.database.read('webhook_outbox').where({ kid }).orderBy('seq').pluck('event');
      return {
        ...opened,
        cases,
        events,
        fileCase: async (id: string, network = 'home') =>
          cases.file(
            { kid, requestId: await decide(id), network, language: 'en' },
            { statement: 'I am a person.' },
          ),
        file: async (id: string) => {
          const requestId = await decide(id);
          const reach = reachOfRequests(kid, [requestId]);
          return contests.file(reach, { requestId, statement: 'mine' }, 'anna');
        },
        /** Two nodes at the same moment. @returns all events, the oldest first */
        look: async (at: number) => {
          setClock(at);
          await Promise.all([1, 2].map(() => notifyDueContests(deps, kid, at)));
          await Promise.all([1, 2].map(() => notifyUnfinishedErasures(deps, kid, at)));
          return events();
        },
      };
    }

    it('takes three open cases a day and network, also when more come at once', async () => {
      const { fileCase, contests, rita, now, setClock } = await house('case-limit');
      const filed = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((id) => fileCase(id)));
      const refused = filed.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      const keys = filed.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      expect(keys).toHaveLength(3);
      const tooMany = { code: 'too-many-cases', headers: { 'retry-after': String(23 * 3600) } };
      expect(refused).toMatchObject([tooMany, tooMany]);
      await fileCase('f', 'work');
      // A resolved one makes room for another.
      const ruling = { outcome: 'upheld', reason: 'r', version: null } as const;
      await contests.resolve(rita, { ...ruling, contestId: keys[0]?.contestId ?? '' });
      await fileCase('g');
      await expect(fileCase('h')).rejects.toMatchObject({ code: 'too-many-cases' });
      setClock(now() + DAY);
      await fileCase('i');
      // The marks of earlier days have been deleted.
      const rows = db.database.read('contests').where({ kid: 'case-limit' }).whereNotNull('case_network');
      expect(await rows).toHaveLength(1);
    });

    it('refuses every wrong key after one and the same look-up, also once it was erased', async () => {
      const { fileCase, cases } = await house('case-keys');
      const { caseKey = '' } = await fileCase('a');
      await db.database.transaction((tx) => tx('contests').where({ kid: 'case-keys' }).delete());
      const queries: string[] = [];
      const end = noteStatements(db.database.read, ({ sql }) => queries.push(sql));
      const unknownKeys = [caseKey, `${caseKey.slice(0, -1)}Z`, '', 'not a key', 'ü'.repeat(3000)];
      for (const key of unknownKeys)
        for (const act of [() => cases.view(key), () => cases.answer(key, 'answer')])
          await expect(act()).rejects.toMatchObject({ code: 'no-such-case' });
      end();
      expect(queries).toHaveLength(2 * unknownKeys.length);
      expect(new Set(queries).size).toBe(1);
      expect(queries[0]).toContain('case_hash');
    });

    it('tells once that a contest is due soon, once that it is overdue, and again of an extended date', async () => {
      const { file, look, contests, rita, events } = await house('notice-due');
      const { contestId, dueAt } = await file('a');
      expect(await look(dueAt - 7 * DAY - 1)).toEqual(['contest.filed']);
      for (const at of [dueAt - 7 * DAY + 1, dueAt - DAY])
        expect(await look(at)).toEqual(['contest.filed', 'contest.due-soon']);
      const { dueAt: later } = await contests.extend(rita, contestId, {
        days: 61,
        reason: 'An expert looks.',
      });
      expect((await look(dueAt + DAY)).slice(2)).toEqual(['contest.extended']);
      for (const at of [later - DAY, later]) expect((await look(at)).slice(3)).toEqual(['contest.due-soon']);
      for (const at of [later + 1, later + DAY])
        expect((await look(at)).slice(4)).toEqual(['contest.overdue']);
      await contests.resolve(rita, { contestId, outcome: 'upheld', reason: 'r', version: null });
      await look(later + 2 * DAY);
      expect((await events()).slice(5)).toEqual(['contest.resolved']);
    });

    it('tells of what was missed that it is overdue, and not first that it was soon', async () => {
      const { file, look } = await house('notice-late');
      const { dueAt } = await file('a');
      expect(await look(dueAt + HOUR)).toEqual(['contest.filed', 'contest.overdue']);
    });

    it('tells once of an erasure that is not done, behind 500 that were reported and still wait', async () => {
      const kid = 'notice-erasure';
      const { look } = await house(kid);
      const row = { kid, subject: 's', requested_by: 'dpo', scopes: '[]', refs: '{}', state: 'logged' };
      await db.database.transaction(async (tx) => {
        for (let n = 0; n < 500; n += 1)
          await tx('erasures').insert({ ...row, receipt_id: `era_many_${n}`, erased_at: NOW, noticed: true });
        for (const state of ['open', 'done'])
          await tx('erasures').insert({ ...row, receipt_id: `era_z_${state}`, erased_at: NOW + 1, state });
      });
      expect(await look(NOW + MINUTE)).toEqual([]);
      for (const at of [NOW + 3 * MINUTE, NOW + HOUR]) expect(await look(at)).toEqual(['erasure.incomplete']);
    });
  });
}
