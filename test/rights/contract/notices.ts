import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMasterKey } from '../../../src/keys/master-key.ts';
import { DAY, HOUR, MINUTE } from '../../../src/lib/clock.ts';
import { createContestService } from '../../../src/rights/contests/service.ts';
import { notifyDueContests, notifyUnfinishedErasures } from '../../../src/rights/notices.ts';
import { tenantSettingsSchema } from '../../../src/tenants/settings.ts';
import type { Tenant } from '../../../src/tenants/tenant.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { WORDS } from './contest-texts.ts';

/** Notices that time brings, told once by however many nodes. */
export function noticesContract(make: MakeDatabase): void {
  describe('notices', () => {
    let db: TestDatabase;
    beforeAll(async () => {
      db = await make();
    });
    afterAll(() => db.close());

    async function house(kid: string) {
      const { database } = db;
      await addTenant(database, kid);
      let now = NOW;
      const tenant = {
        kid,
        rightsKey: Buffer.alloc(32, 4),
        settings: tenantSettingsSchema.parse({}),
        wrapper: createMasterKey(Buffer.alloc(32, 7), randomBytes),
        webhooksFor: () => ['w1'],
      } as unknown as Tenant;
      const deps = {
        database,
        tenantOf: () => tenant,
        clock: () => now,
        random: randomBytes,
        contestTexts: WORDS,
      };
      const contests = createContestService(deps);
      return {
        contests,
        rita: { kid, role: 'reviewer', ref: 'rita' } as const,
        /** Two nodes at the same moment. */
        look: async (at: number) => {
          now = at;
          await Promise.all([1, 2].map(() => notifyDueContests(deps, kid, at)));
          await Promise.all([1, 2].map(() => notifyUnfinishedErasures(deps, kid, at)));
        },
        file: async (id: string) => {
          await createRecorder(database).record(createEntry({ kid, id: `${kid}${id}`, durable: `d-${id}` }));
          const reach = { kid, durable: `d-${id}`, visitorId: null, linked: new Set<string>() };
          const requestId = `req_${kid}${id}`;
          const nobody = { principal: null, principalId: null };
          return contests.file({ ...reach, ...nobody }, { requestId, statement: 'mine' }, 'anna');
        },
        events: () => database.read('webhook_outbox').where({ kid }).orderBy('seq').pluck('event'),
      };
    }

    it('tells once that a contest is due soon, and once that it is overdue', async () => {
      const { file, look, events } = await house('notice-due');
      const { dueAt } = await file('a');
      await look(dueAt - 7 * DAY - 1);
      expect(await events()).toEqual(['contest.filed']);
      for (const at of [dueAt - 7 * DAY + 1, dueAt - DAY, dueAt]) await look(at);
      expect(await events()).toEqual(['contest.filed', 'contest.due-soon']);
      for (const at of [dueAt + 1, dueAt + DAY]) await look(at);
      expect(await events()).toEqual(['contest.filed', 'contest.due-soon', 'contest.overdue']);
    });

    it('tells of what was missed that it is overdue, and not first that it was soon', async () => {
      const { file, look, events } = await house('notice-late');
      const { dueAt } = await file('a');
      await look(dueAt + HOUR);
      expect(await events()).toEqual(['contest.filed', 'contest.overdue']);
    });

    it('tells again of an extended date, and of a resolved one nothing', async () => {
      const { file, look, events, contests, rita } = await house('notice-more');
      const { contestId, dueAt } = await file('a');
      await look(dueAt - DAY);
      const { dueAt: later } = await contests.extend(rita, contestId, {
        days: 61,
        reason: 'An expert looks.',
      });
      await look(dueAt + DAY);
      expect(await events()).toEqual(['contest.filed', 'contest.due-soon', 'contest.extended']);
      await look(later - DAY);
      expect((await events()).slice(3)).toEqual(['contest.due-soon']);
      const ruling = { contestId, outcome: 'upheld', reason: 'r', version: null } as const;
      await contests.resolve(rita, ruling);
      await look(later + DAY);
      expect((await events()).slice(4)).toEqual(['contest.resolved']);
    });

    it('tells once of an erasure that is not done', async () => {
      const kid = 'notice-erasure';
      const { look, events } = await house(kid);
      const row = { kid, subject: 's', requested_by: 'dpo', erased_at: NOW, scopes: '[]', refs: '{}' };
      await db.database.transaction(async (tx) => {
        for (const step of ['rows', 'done'])
          await tx('erasures').insert({ ...row, receipt_id: `era_notice_${step}`, step });
      });
      await look(NOW + MINUTE);
      expect(await events()).toEqual([]);
      for (const at of [NOW + 2 * MINUTE, NOW + 3 * MINUTE]) await look(at);
      expect(await events()).toEqual(['erasure.incomplete']);
    });

    it('reports an erasure behind 500 that were reported and still wait', async () => {
      const kid = 'notice-many';
      const { look, events } = await house(kid);
      const row = { kid, subject: 's', requested_by: 'dpo', scopes: '[]', refs: '{}', step: 'logged' };
      await db.database.transaction(async (tx) => {
        for (let n = 0; n < 500; n++) {
          const noticed = { receipt_id: `era_many_${n}`, erased_at: NOW + n, noticed: true };
          await tx('erasures').insert({ ...row, ...noticed });
        }
        await tx('erasures').insert({ ...row, receipt_id: 'era_many_z', erased_at: NOW + 500 });
      });
      await look(NOW + HOUR);
      expect(await events()).toEqual(['erasure.incomplete']);
    });
  });
}
