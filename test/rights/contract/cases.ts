import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMasterKey } from '../../../src/keys/master-key.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { lockHead } from '../../../src/log/entries.ts';
import { createCaseService, hashCaseKey } from '../../../src/rights/contests/case-service.ts';
import { createContestService } from '../../../src/rights/contests/service.ts';
import { eraseRows } from '../../../src/rights/erase/rows.ts';
import { tenantSettingsSchema } from '../../../src/tenants/settings.ts';
import type { Tenant } from '../../../src/tenants/tenant.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { WORDS } from './contest-texts.ts';

const SECRET = Buffer.alloc(32, 9);
const FILING = { statement: 'I am a person.', email: 'anna@example.org' };

/** Contests without an account, by both databases. */
export function casesContract(make: MakeDatabase): void {
  describe('cases', () => {
    let db: TestDatabase;
    beforeAll(async () => {
      db = await make();
    });
    afterAll(() => db.close());

    async function house(kid: string) {
      await addTenant(db.database, kid);
      let now = Math.floor(NOW / DAY) * DAY + HOUR;
      const wrapper = createMasterKey(Buffer.alloc(32, 7), randomBytes);
      const tenant = {
        kid,
        rightsKey: Buffer.alloc(32, 4),
        settings: tenantSettingsSchema.parse({}),
        webhooksFor: () => [],
        wrapper,
      };
      const tenantOf = (id: string) => (id === kid ? (tenant as unknown as Tenant) : undefined);
      const deps = {
        database: db.database,
        tenantOf,
        clock: () => now,
        random: randomBytes,
        contestTexts: WORDS,
      };
      const contests = createContestService(deps);
      const markNetwork = (network: string): string => `${network} ${Math.floor(now / DAY)}`;
      const cases = createCaseService({ ...deps, contests, serverSecret: SECRET, markNetwork });
      return {
        contests,
        cases,
        rita: { kid, role: 'reviewer', ref: 'rita' } as const,
        at: (time: number) => {
          now = Math.floor(NOW / DAY) * DAY + time;
        },
        file: async (id: string, network = 'home') => {
          await createRecorder(db.database).record(
            createEntry({ kid, id: `${kid}${id}`, durable: `d-${id}` }),
          );
          return cases.file({ kid, requestId: `req_${kid}${id}`, network }, FILING);
        },
        rows: () => db.database.read('contests').where({ kid }).orderBy('filed_at'),
      };
    }

    it('takes three open cases a day and network, also when more come at once', async () => {
      const { file, contests, rita, at, rows } = await house('case-limit');
      const filed = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((id) => file(id)));
      const refused = filed.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      const keys = filed.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      expect(keys).toHaveLength(3);
      for (const refusal of refused)
        expect(refusal).toMatchObject({
          code: 'too-many-cases',
          headers: { 'retry-after': String(23 * 3600) },
        });
      await file('f', 'work');
      // A resolved one makes room for another.
      const ruling = { outcome: 'upheld', reason: 'r', version: null } as const;
      await contests.resolve(rita, { ...ruling, contestId: keys[0]?.contestId ?? '' });
      await file('g');
      await expect(file('h')).rejects.toMatchObject({ code: 'too-many-cases' });
      at(DAY + HOUR);
      await file('i');
      // The marks of earlier days have been deleted.
      const marks = (await rows()).map((row) => row.case_network).filter((mark) => mark !== null);
      expect(marks).toHaveLength(1);
    });

    it('takes one answer for each question, and keeps those before', async () => {
      const { file, cases, contests, rita } = await house('case-answer');
      const { caseKey = '', contestId } = await file('a');
      const closed = { code: 'case-closed' };
      await expect(cases.answer(caseKey, 'unasked')).rejects.toMatchObject(closed);
      await contests.ask(rita, contestId, 'Which browser?');
      expect(await cases.view(caseKey)).toMatchObject({ question: 'Which browser?', answer: null });
      expect(await cases.answer(caseKey, 'Firefox.')).toMatchObject({ answer: 'Firefox.', status: 'open' });
      await expect(cases.answer(caseKey, 'Once more.')).rejects.toMatchObject(closed);
      await contests.ask(rita, contestId, 'Which version?');
      expect(await cases.view(caseKey)).toMatchObject({ question: 'Which version?', answer: null });
      expect(await cases.answer(caseKey, '128')).toMatchObject({ answer: '128' });
      const resolved = await contests.resolve(rita, {
        contestId,
        outcome: 'overturned',
        reason: 'A person.',
        version: null,
      });
      expect(resolved).toMatchObject({
        earlier: [{ question: 'Which browser?', answer: 'Firefox.' }],
        email: FILING.email,
      });
      expect(await cases.view(caseKey)).toMatchObject({ outcome: 'overturned', reasons: ['A person.'] });
      await expect(cases.answer(caseKey, 'late')).rejects.toMatchObject(closed);
      const audit = await db.database
        .read('audit_log')
        .where({ kid: 'case-answer' })
        .orderBy('seq')
        .pluck('action');
      expect(audit.filter((action: string) => action === 'contest.answered')).toHaveLength(2);
    });

    it('opens for its own case alone, wherever a writer of the database moves its hash', async () => {
      const { file, cases } = await house('case-moved');
      const [mine, theirs] = [await file('a'), await file('b')];
      const caseHash = hashCaseKey(SECRET, mine.caseKey ?? '');
      await db.database.transaction(async (tx) => {
        const of = (contestId: string) => tx('contests').where({ contest_id: contestId });
        await of(mine.contestId).update({ case_hash: null });
        await of(theirs.contestId).update({ case_hash: caseHash });
      });
      const refused = { code: 'no-such-case' };
      await expect(cases.view(mine.caseKey ?? '')).rejects.toMatchObject(refused);
      await expect(cases.answer(mine.caseKey ?? '', 'a')).rejects.toMatchObject(refused);
    });

    it('refuses every wrong key after one and the same look-up, also once it was erased', async () => {
      const kid = 'case-keys';
      const { file, cases } = await house(kid);
      const { caseKey = '' } = await file('a');
      const target = {
        kid,
        durables: [],
        requests: [`req_${kid}a`],
        linksOf: null,
        requestRef: (id: string) => id,
      };
      const { others: needles } = await db.database.transaction(async (tx) => {
        await lockHead(tx, kid);
        const keep = { openContests: false, override: false };
        return eraseRows(tx, { ...target, keep });
      });
      // The erasure searches the files for these values.
      expect(needles).toEqual([hashCaseKey(SECRET, caseKey), expect.stringMatching(/^[A-Za-z0-9+/]{48}$/)]);
      const queries: string[] = [];
      const note = ({ sql }: { readonly sql: string }): number => queries.push(sql);
      db.database.read.on('query', note);
      const unknownKeys = [caseKey, `${caseKey.slice(0, -1)}Z`, '', 'not a key', 'ü'.repeat(3000)];
      for (const key of unknownKeys)
        for (const act of [() => cases.view(key), () => cases.answer(key, 'answer')])
          await expect(act()).rejects.toMatchObject({ code: 'no-such-case' });
      db.database.read.removeListener('query', note);
      expect(queries).toHaveLength(2 * unknownKeys.length);
      expect(new Set(queries).size).toBe(1);
      expect(queries[0]).toContain('case_hash');
    });
  });
}
