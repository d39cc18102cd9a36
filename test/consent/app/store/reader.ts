import { describe, expect, it } from 'vitest';
import type { StateQuery } from '../../../../src/consent/state-store.ts';
import { createConsentStateReader } from '../../../../src/consent/state-store.ts';
import { listPolicies, publishPolicy, savePurposes } from '../../../../src/consent/terms-store.ts';
import { createFirstPurpose } from '../../../../src/tenants/purposes.ts';
import { operatorAt } from '../../../support/act.ts';
import { NOW } from '../../../support/make.ts';
import {
  addLog,
  append,
  createAppend,
  createAppender,
  expectWhole,
  macOf,
  type Nodes,
  numbers,
  PURPOSE,
} from './fixture.ts';

export function readerContract(at: Nodes): void {
  describe('ConsentStateReader', () => {
    const query = (kid: string, principalId: string, purpose = PURPOSE): StateQuery => ({
      kid,
      principal: `ref-${principalId}`,
      purpose,
      mac: macOf(kid),
    });

    it('answers each of 1,000 reads at once with its own, and a purpose never with another', async () => {
      const kid = await addLog(at.db, 'many');
      const appender = createAppender(at.db);
      const people = numbers(20).map((i) => `p${i}`);
      await Promise.all(
        people.map((principalId, i) =>
          append(appender, createAppend(kid, { principalId, choice: i % 2 === 0 ? 'granted' : 'denied' })),
        ),
      );
      const reader = createConsentStateReader(at.other);
      const queries = numbers(1000).map((i) => query(kid, `p${i % 25}`, i % 3 === 0 ? 'ads' : PURPOSE));
      const expected = numbers(1000).map((i) => {
        if (i % 3 === 0 || i % 25 >= 20) return undefined;
        return (i % 25) % 2 === 0 ? 'granted' : 'denied';
      });
      const states = await Promise.all(queries.map((one) => reader.read(one)));
      expect(states.map(({ event }) => event?.choice)).toEqual(expected);
      const all = await reader.readAll(queries.slice(0, 100));
      expect(all).toEqual(states.slice(0, 100));
    });

    it('readAll is one snapshot', async () => {
      const kid = await addLog(at.db, 'snapshot');
      const appender = createAppender(at.db);
      const [one] = createAppend(kid).entries;
      const entries = ['a', 'b', 'c'].map((purpose) => ({ ...one!, purpose }));
      const reader = createConsentStateReader(at.other);
      const heads = new Set<number>();
      let done = false;
      const writing = (async () => {
        for (let i = 0; i < 20; i += 1) await append(appender, createAppend(kid, { entries }));
        done = true;
      })();
      while (!done) {
        const states = await reader.readAll(['a', 'b', 'c'].map((purpose) => query(kid, 'anna', purpose)));
        const seqs = states.map(({ event }, i) => (event ? event.seq - i : -1));
        expect(new Set(seqs).size).toBe(1);
        expect(new Set(states.map(({ head }) => head.seq)).size).toBe(1);
        heads.add(states[0]?.head.seq ?? 0);
      }
      await writing;
      expect(heads.size).toBeGreaterThan(1);
    });
  });

  describe('terms beside grants', () => {
    it('policies, purposes and grants from two nodes make one log', async () => {
      const kid = await addLog(at.db, 'terms');
      const nodes = [at.db, at.other] as const;
      const appenders = nodes.map(createAppender);
      const terms = { kid, stateMac: macOf(kid) };
      await Promise.all(
        numbers(30).flatMap((i) => {
          const node = nodes[i % 2] ?? at.db;
          const text = `policy ${i}`;
          const purpose = { ...createFirstPurpose(), id: `purpose-${i % 4}` };
          return [
            append(appenders[i % 2]!, createAppend(kid, { principalId: `p${i}` })),
            ...(i % 3 === 0
              ? [publishPolicy(node, terms, { text, material: i % 2 === 0 }, operatorAt(NOW))]
              : []),
            ...(i % 3 === 1 ? [savePurposes(node, terms, [purpose], operatorAt(NOW))] : []),
          ];
        }),
      );
      const policies = await listPolicies(at.other, kid);
      expect(policies.map(({ version }) => version)).toEqual(numbers(10).map((i) => i + 1));
      expect(new Set(policies.map(({ text }) => text)).size).toBe(10);
      expect(await expectWhole(at.other, kid)).toBe(52);
    });
  });
}
