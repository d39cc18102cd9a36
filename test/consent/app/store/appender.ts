import { describe, expect, it } from 'vitest';
import { listHistory } from '../../../../src/consent/openings-store.ts';
import {
  addLog,
  allEntries,
  append,
  createAppend,
  createAppender,
  expectWhole,
  type Nodes,
  numbers,
  opens,
  principalKey,
  stateOf,
  wrapper,
} from './fixture.ts';

export function appenderContract(at: Nodes): void {
  describe('ConsentAppender', () => {
    it('the last of many writes of one person, on two nodes, is the one that counts', async () => {
      const kid = await addLog(at.db, 'last');
      const appenders = [createAppender(at.db), createAppender(at.other)];
      await Promise.all(
        numbers(24).map((i) => {
          const choice = (['granted', 'withdrawn', 'denied'] as const)[i % 3] ?? 'granted';
          return append(appenders[i % 2]!, createAppend(kid, { choice }));
        }),
      );
      const page = { before: null, limit: 100 };
      const history = await listHistory(at.other, { kid, wrapper }, ['ref-anna'], page);
      expect(history.map(({ seq }) => seq)).toEqual(numbers(24).map((i) => 25 - i));
      expect((await stateOf(at.other, kid)).event).toMatchObject({ seq: 25, choice: history[0]?.choice });
      const opened = await Promise.all(history.map(({ seq }) => opens(at.other, kid, seq)));
      expect(new Set(opened)).toEqual(new Set([true]));
    });

    it('keeps the order of one turn', async () => {
      const kid = await addLog(at.db, 'turn');
      const appender = createAppender(at.db);
      const choices = ['granted', 'withdrawn', 'granted', 'denied'] as const;
      await Promise.all(choices.map((choice) => append(appender, createAppend(kid, { choice }))));
      const history = await listHistory(at.other, { kid, wrapper }, ['ref-anna'], {
        before: null,
        limit: 10,
      });
      expect(history.map(({ choice }) => choice)).toEqual([...choices].reverse());
      expect((await stateOf(at.other, kid)).event?.choice).toBe('denied');
    });

    it('keeps tenants apart, also in one turn', async () => {
      const kids = [await addLog(at.db, 'apart-b'), await addLog(at.db, 'apart-a')];
      const appender = createAppender(at.db);
      const requests = numbers(40).map((i) => createAppend(kids[i % 2] ?? '', { principalId: `p${i % 3}` }));
      const answers = await Promise.all(requests.map((request) => append(appender, request)));
      for (const [i, kid] of kids.entries()) {
        const ownSeqs = answers.filter((_, n) => n % 2 === i).map(({ entries }) => entries[0]?.seq);
        expect(ownSeqs).toEqual(numbers(20).map((n) => n + 2));
        await expectWhole(at.other, kid);
      }
      expect(await principalKey(at.other, 'apart-a', 'p0')).not.toEqual(
        await principalKey(at.other, 'apart-b', 'p0'),
      );
    });

    it('takes a full batch of people with a key each, who name 40 purposes, for a webhook', async () => {
      const kid = await addLog(at.db, 'wide');
      const appender = createAppender(at.db);
      const [one] = createAppend(kid).entries;
      const entries = numbers(40).map((i) => ({ ...one!, purpose: `purpose-${i}` }));
      const notify = () => [{ webhook: 'hook', event: 'consent.granted', ciphertext: 'sealed' } as const];
      const requests = numbers(200).map((i) => {
        const idempotency = { caller: 'key_1', key: `k${i}`, bodyHash: 'body' };
        return createAppend(kid, { principalId: `w${i}`, entries, notify, idempotency });
      });
      const results = await Promise.allSettled(requests.map((request) => append(appender, request)));
      // A database quotes a failed statement of 8,000 rows in full.
      expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['fulfilled']));
      expect(await allEntries(at.other, kid)).toHaveLength(8002);
      expect((await stateOf(at.other, kid, 'w199', 'purpose-39')).event?.seq).toBe(8001);
      expect(await at.other.read('webhook_outbox').where({ kid })).toHaveLength(8000);
      expect(await at.other.read('consent_principals').where({ kid })).toHaveLength(200);
    });

    it('leaves the log as it was when the state cannot be written', async () => {
      const kid = await addLog(at.db, 'atomic');
      const [entry] = createAppend(kid).entries;
      const bad = { ...entry!, purpose: null as unknown as string };
      const request = createAppend(kid, { entries: [entry!, bad] });
      await expect(createAppender(at.db).append(request)).rejects.toThrow();
      expect(await allEntries(at.other, kid)).toHaveLength(2);
      expect((await stateOf(at.other, kid)).event).toBeNull();
      await expectWhole(at.other, kid);
    });
  });
}
