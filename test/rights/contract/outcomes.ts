import type { Knex } from 'knex';
import { describe, expect, it } from 'vitest';
import { definePurpose } from '../../../src/consent/terms-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { bumpTenant } from '../../../src/db/meta-store.ts';
import { HOUR } from '../../../src/lib/clock.ts';
import { anchorVerdicts } from '../../../src/log/anchors-store.ts';
import { createContestService } from '../../../src/rights/contests/service.ts';
import { insertOutcome, readPatterns } from '../../../src/rights/outcomes-store.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import { ruleReviews } from '../../../src/rights/tally-store.ts';
import type { ReportedOutcome } from '../../../src/schema/responses.ts';
import type { ContestOutcome } from '../../../src/schema/rights.ts';
import { createFirstPurpose } from '../../../src/tenants/purposes.ts';
import { changeSettings, createTenantStore } from '../../../src/tenants/tenant-store.ts';
import { termsOf } from '../../consent/contract/consent-support.ts';
import { holdHot, type MakeDatabase, othersWait } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';
import { sealProblems } from '../../support/verify.ts';
import { contestOf, insert, openHouse } from './contest-texts.ts';

const RULES = [
  { id: 'M2', weight: 0.2, kind: 'M' },
  { id: 'A1', weight: 0.9, kind: 'A' },
] as const;

/** A deadlock is tried again. */
const noteTries = (database: Database, onTry: () => void): Database => ({
  ...database,
  transaction: (work) =>
    database.transaction((tx) => {
      onTry();
      return work(tx);
    }),
});

/** Both databases must pass this suite. */
export function outcomesContract(make: MakeDatabase): void {
  describe('outcomes of decisions', () => {
    const { db, other } = twoNodes(make);

    async function house(kid: string) {
      const { deps, rita, decide } = await openHouse(db.database, kid);
      const idOf = (name: string): string => `req_${kid}-${name}`;
      return {
        decide: (name: string, verdict: object = {}) =>
          decide(name, { class: 'undeclared_automation', rules: RULES, ...verdict }),
        report: (name: string, outcome: ReportedOutcome, on = db.database) =>
          insertOutcome(on, { kid, requestId: idOf(name), outcome, at: NOW }),
        file: (name: string) => {
          const filing = { kid, contestId: `con_${kid}${name}`, requestId: idOf(name), durable: null };
          return insert(db.database, contestOf({ ...filing, class: 'undeclared_automation' }));
        },
        rule: (name: string, outcome: ContestOutcome, database = other) =>
          createContestService({ ...deps, database }).resolve(rita, {
            contestId: `con_${kid}${name}`,
            outcome,
            reason: 'A reason of a reviewer.',
            version: null,
          }),
        /** [upheld, overturned, confirmed, mistaken] of A1; those of M2 have to be the same. */
        counts: async () => {
          const rows = await ruleReviews(other, kid);
          const [a, m] = ['A1', 'M2'].map((rule) => {
            const row = rows.find((one) => one.rule === rule);
            return row && [row.upheld, row.overturned, row.confirmed, row.mistaken].map(Number);
          });
          expect(m).toEqual(a);
          return a;
        },
        rows: async () =>
          (await other.read('decision_outcomes').where({ kid }).pluck('outcome')) as ReportedOutcome[],
      };
    }

    it('one of many reports at once is stored, and counted once', async () => {
      const { decide, report, counts, rows } = await house('race');
      await decide('x');
      const outcomes = ['fraud', 'false-alarm', 'chargeback', 'fraud', 'passed-step-up', 'other'] as const;
      const reports = await Promise.all(
        outcomes.map((one, i) => report('x', one, i % 2 ? other : db.database)),
      );
      expect(reports.filter((one) => one?.created)).toHaveLength(1);
      const [stored] = await rows();
      expect(await rows()).toHaveLength(1);
      for (const one of reports) expect(one).toMatchObject({ outcome: stored, at: NOW });
      const sum = ((await counts()) ?? []).reduce((total, n) => total + n, 0);
      expect(sum).toBe(stored === 'other' ? 0 : 1);
    });

    it('takes the rules in one order, so that two transactions never wait for each other', async () => {
      const { decide, report, counts } = await house('order');
      await decide('first');
      await decide('x');
      await report('first', 'fraud');
      const add = (tx: Knex.Transaction, rule: string) =>
        tx('rule_reviews').where({ kid: 'order', rule }).increment('confirmed', 1);
      let reported: Promise<unknown> = Promise.resolve();
      let tries = 0;
      const counted = noteTries(other, () => {
        tries += 1;
      });
      await db.database.transaction(async (tx) => {
        tries += 1;
        await add(tx, 'A1');
        reported = report('x', 'fraud', counted);
        await othersWait(db.database);
        await add(tx, 'M2');
      });
      await reported;
      expect({ tries, counts: await counts() }).toEqual({ tries: 2, counts: [0, 0, 3, 0] });
    });

    it('a ruling is counted in place of what was reported, whichever came first', async () => {
      const { decide, report, file, rule, counts, rows } = await house('ruled');
      for (const name of ['first', 'later', 'unreported', 'other']) {
        await decide(name);
        await file(name);
      }
      await report('first', 'fraud');
      expect(await counts()).toEqual([0, 0, 1, 0]);
      await rule('first', 'overturned');
      expect(await counts()).toEqual([0, 1, 0, 0]);
      await rule('later', 'upheld');
      expect(await report('later', 'false-alarm')).toMatchObject({ created: true });
      expect(await counts()).toEqual([1, 1, 0, 0]);
      await rule('unreported', 'upheld');
      await report('other', 'other');
      await rule('other', 'upheld');
      expect(await counts()).toEqual([3, 1, 0, 0]);
      expect(new Set(await rows())).toEqual(new Set(['false-alarm', 'fraud', 'other']));
    });

    it('a report that meets a ruling under way is not counted beside it', async () => {
      const { decide, report, file, rule, counts } = await house('meets');
      await decide('x');
      await file('x');
      const ruling = await holdHot(other, (holding) => rule('x', 'overturned', holding));
      const reported = report('x', 'fraud');
      await othersWait(db.database);
      await ruling.commit();
      await reported;
      expect(await counts()).toEqual([0, 1, 0, 0]);
    });

    it('decisions are gathered by the rules that fired, with what was found right and wrong', async () => {
      const { decide, report, file, rule } = await house('gather');
      const agent = { class: 'declared_agent', declaredAgentId: 'https://agent.example' };
      for (const name of ['fraud', 'alarm', 'other', 'none', 'ruled', 'cleared', 'open']) await decide(name);
      await decide('person', { class: 'human', rules: [] });
      await decide('unknown', { class: 'unknown', rules: RULES.slice(0, 1) });
      await decide('agent', agent);
      for (const name of ['fraud', 'cleared', 'person', 'agent']) await report(name, 'fraud');
      for (const name of ['alarm', 'ruled']) await report(name, 'false-alarm');
      await report('other', 'other');
      for (const name of ['ruled', 'cleared', 'open', 'unknown']) await file(name);
      await rule('ruled', 'upheld');
      await rule('cleared', 'overturned');
      await rule('unknown', 'upheld');
      const rules = ['A1', 'M2'];
      const unresolved = { incomplete: false, fixed: null, right: 0, wrong: 0 };
      const found = await readPatterns(other, 'gather');
      expect(found).toHaveLength(5);
      expect(found).toEqual(
        expect.arrayContaining([
          { ...unresolved, rules, decisions: 6, right: 2, wrong: 1 },
          { ...unresolved, rules, decisions: 1, wrong: 1, fixed: 'human' },
          { ...unresolved, rules, decisions: 1, fixed: 'declared_agent' },
          { ...unresolved, rules: [], decisions: 1 },
          { ...unresolved, rules: ['M2'], decisions: 1 },
        ]),
      );
    });

    it.each(['human', 'declared_agent'])(
      'a decision %s counts no rule, unless it is overturned',
      async (name) => {
        const { decide, report, file, rule, counts } = await house(`class-${name.replace('_', '-')}`);
        for (const id of ['upheld', 'overturned']) {
          await decide(id, { class: name });
          await file(id);
        }
        for (const outcome of ['fraud', 'false-alarm'] as const) await report('upheld', outcome);
        await rule('upheld', 'upheld');
        expect(await counts()).toBeUndefined();
        await rule('overturned', 'overturned');
        expect(await counts()).toEqual([0, 1, 0, 0]);
      },
    );

    it('leaves a sealed hour as it was sealed, and leaves with its decision', async () => {
      const { decide, report, rows, counts } = await house('sealed');
      await decide('x');
      await anchorVerdicts(db.database, 'sealed', NOW + 2 * HOUR);
      await report('x', 'chargeback');
      expect(await sealProblems(other, 'sealed')).toEqual([]);
      expect(await rows()).toEqual(['chargeback']);
      expect(
        (await deleteExpired(db.database, { kid: 'sealed', days: 0, now: NOW + 2 * HOUR })).decisions,
      ).toBe(1);
      expect(await rows()).toEqual([]);
      expect(await report('x', 'chargeback')).toBeNull();
      // The device of that outcome belongs to nobody known, so the row stays.
      expect(await counts()).toEqual([0, 0, 1, 0]);
    });

    it('a ruling that changes the tenant and a writer of terms lock in one order, and never wait for each other', async () => {
      const kid = 'rows';
      const { deps, rita } = await openHouse(db.database, kid);
      const contestId = `con_${kid}`;
      await insert(db.database, contestOf({ kid, contestId, requestId: 'req_r', durable: null }));
      let tries = 0;
      const counted = noteTries(other, () => {
        tries += 1;
      });
      const by = operatorAt(NOW);
      const ruling = { contestId, outcome: 'overturned', reason: 'It buys here.', version: null } as const;
      let ruled: Promise<unknown> = Promise.resolve();
      // Terms are written in these steps (`savePurposes`); the ruling comes between them.
      await db.database.transaction(async (tx) => {
        tries += 1;
        await bumpTenant(tx, kid);
        ruled = createContestService({ ...deps, database: counted }).resolve(
          rita,
          ruling,
          async (changed) => {
            await changeSettings(changed.tx, kid, (before) => ({ ...before, 'agents.dryRun': true }), by);
          },
        );
        await othersWait(db.database);
        await definePurpose(tx, termsOf(kid), createFirstPurpose(), by);
      });
      await ruled;
      const tenant = await createTenantStore(other).get(kid);
      expect({ tries, isDry: tenant?.settings['agents.dryRun'] }).toEqual({ tries: 2, isDry: true });
    });

    it('is not stored for a tenant that is being removed', async () => {
      const { decide, report, rows } = await house('going');
      await decide('y');
      await db.database.transaction((tx) => tx('tenants').where({ kid: 'going' }).update({ revision: -1 }));
      await expect(report('y', 'fraud')).rejects.toMatchObject({ code: 'unauthenticated' });
      expect(await rows()).toEqual([]);
    });
  });
}
