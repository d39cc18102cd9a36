import { describe, expect, it } from 'vitest';
import {
  type DecisionFilter,
  type DecisionQuery,
  decisionsPage,
  MAX_LOOKED_AT,
} from '../../../src/console/decisions-store.ts';
import { DAY, SECOND } from '../../../src/lib/clock.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

/** The list of decisions on both databases. */

const CLASSES = ['human', 'undeclared_automation', 'unknown', 'declared_agent'] as const;

export function decisionsContract(make: MakeDatabase): void {
  describe('the list of decisions', () => {
    const { db } = twoNodes(make);

    /** Several decisions have the same millisecond. */
    async function fill(kid: string, count: number) {
      await addTenant(db.database, kid);
      const recorder = createRecorder(db.database);
      const entries = Array.from({ length: count }, (_, i) => {
        const name = CLASSES[i % CLASSES.length] ?? 'human';
        const rules = i % 5 === 0 ? [{ id: 'A1', weight: 1, kind: 'A' as const }] : [];
        const agents = { declaredAgentId: name === 'declared_agent' ? 'https://agent.example' : null };
        const verdict = { class: name, rules, policyVersion: i < 20 ? 'older' : 'newer', ...agents };
        const decidedAt = NOW - Math.floor(i / 3) * SECOND;
        return createEntry({ kid, id: `${kid}-${i}`, durable: `d-${i}`, decidedAt, verdict });
      });
      await Promise.all(entries.map((entry) => recorder.record(entry)));
      return entries.map(({ verdict }) => verdict);
    }

    const page = (kid: string, query: Partial<DecisionQuery>) =>
      decisionsPage(db.database, kid, { filter: {}, cursor: null, isBackward: false, limit: 7, ...query });

    async function walk(kid: string, filter: DecisionFilter, isBackward = false) {
      const ids: string[] = [];
      let cursor = isBackward ? { at: 0, requestId: 'req_' } : null;
      for (;;) {
        const { found, stoppedAt } = await page(kid, { filter, cursor, isBackward });
        ids.push(...found.map(({ requestId }) => requestId));
        const next = found.length === 7 ? found.at(-1) : stoppedAt;
        if (!next) return ids;
        cursor = next;
      }
    }

    it('pages in both directions have each decision once, in the order of time, whatever the filter', async () => {
      const verdicts = await fill('list', 60);
      await fill('list-other', 5);
      const newestFirst = verdicts.toSorted(
        (a, b) => b.decidedAt - a.decidedAt || (a.requestId < b.requestId ? 1 : -1),
      );
      const idsOf = (keep: (one: (typeof verdicts)[number]) => boolean) =>
        newestFirst.filter(keep).map(({ requestId }) => requestId);
      const filters: [DecisionFilter, (one: (typeof verdicts)[number]) => boolean][] = [
        [{}, () => true],
        ...CLASSES.map((name): (typeof filters)[number] => [{ class: name }, (one) => one.class === name]),
        [{ rule: 'A1' }, ({ rules }) => rules.some(({ id }) => id === 'A1')],
        [{ agent: 'https://agent.example' }, ({ declaredAgentId }) => declaredAgentId !== null],
        [{ agent: 'https://other.example' }, () => false],
        [
          { policy: 'older', class: 'unknown' },
          (one) => one.policyVersion === 'older' && one.class === 'unknown',
        ],
        [
          { from: NOW - 9 * SECOND, to: NOW - 2 * SECOND },
          ({ decidedAt: at }) => at >= NOW - 9 * SECOND && at < NOW - 2 * SECOND,
        ],
      ];
      for (const [filter, keep] of filters) {
        expect([filter, await walk('list', filter)]).toEqual([filter, idsOf(keep)]);
        expect([filter, await walk('list', filter, true)]).toEqual([filter, idsOf(keep).toReversed()]);
      }
    });

    it('a search looks at a limited number of rows, says where it stopped, and goes on from there', async () => {
      const kid = 'list-long';
      await fill(kid, 4);
      const rows = Array.from({ length: MAX_LOOKED_AT + 100 }, (_, i) => ({
        kid,
        request_id: `req_later_${i}`,
        decided_at: NOW + DAY + i,
        class: 'human',
        durable: null,
        verdict: JSON.stringify({ class: 'human', rules: [], declaredAgentId: null }),
        salt: 's',
        commitment: 'c',
      }));
      await db.database.transaction(async (tx) => {
        for (let i = 0; i < rows.length; i += 500) await tx('decisions').insert(rows.slice(i, i + 500));
      });
      const { found, stoppedAt } = await page(kid, { filter: { rule: 'A1' } });
      expect(found).toEqual([]);
      expect(stoppedAt?.at).toBe(NOW + DAY + 100);
      expect((await page(kid, { filter: { rule: 'A1' }, cursor: stoppedAt })).found).toHaveLength(1);
      // A class is found at once.
      expect((await page(kid, { filter: { class: 'unknown' } })).found).toHaveLength(1);
    });
  });
}
