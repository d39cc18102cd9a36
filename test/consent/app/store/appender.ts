import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConsentAppender } from '../../../../src/consent/append-store.ts';
import type { AppendRequest } from '../../../../src/consent/plan-write.ts';
import { listHistory, listState } from '../../../../src/consent/terms-store.ts';
import type { Database } from '../../../../src/db/engine.ts';
import type { ConsentChoice } from '../../../../src/schema/consent.ts';
import type { MakeDatabase, TestDatabase } from '../../../db/contract/database.ts';
import { NOW } from '../../../support/make.ts';
import {
  addLog,
  allEntries,
  append,
  auditLog,
  createAppend,
  createAppender,
  opens,
  PURPOSE,
  principalKey,
  stateOf,
} from './fixture.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

const tell =
  (hooks: number): AppendRequest['notify'] =>
  ({ seq }) =>
    numbers(hooks).map((i) => ({
      webhook: `hook-${i}`,
      event: 'consent.granted',
      ciphertext: `sealed ${seq}`,
    }));

/**
 * @returns each distinct outcome once, cut to 60 characters: a database quotes a statement of 8,000 rows in
 * full
 */
async function appendAll(appender: ConsentAppender, requests: readonly AppendRequest[]): Promise<string[]> {
  const results = await Promise.allSettled(requests.map((request) => append(appender, request)));
  const words = results.map((end) =>
    end.status === 'fulfilled' ? 'written' : String(end.reason).slice(-60),
  );
  return [...new Set(words)];
}

export function appenderContract(make: MakeDatabase): void {
  describe('ConsentAppender', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    it('has entry, opening and state on every connection when it answers', async () => {
      const kid = await addLog(db.database, 'whole');
      const { entries } = await append(createAppender(db.database), createAppend(kid));
      const { seq, hash } = entries[0]!;
      expect(seq).toBe(2);
      expect((await allEntries(other, kid))[seq]?.hash).toBe(hash);
      expect(await stateOf(other, kid)).toEqual({
        erased: false,
        gpc: false,
        event: {
          at: NOW,
          choice: 'granted',
          policyVersion: 2,
          expiresAt: NOW + 1000,
          seq,
          hash,
          overGpc: false,
          given: null,
          doubtSeq: null,
        },
        head: { seq, hash },
      });
      expect(await listState(other, kid, 'ref-anna')).toMatchObject([
        { purpose: PURPOSE, at: NOW, seq, hash },
      ]);
      expect(await opens(other, kid, seq)).toBe(true);
      const { stored, computed } = await auditLog(other, kid);
      expect(stored).toEqual(computed);
    });

    it('knows a yes over a GPC signal until the next word of the person', async () => {
      const kid = await addLog(db.database, 'over-gpc');
      const appender = createAppender(db.database);
      const [entry] = createAppend(kid, { gpc: true }).entries;
      const detail = { ...entry!.detail, overGpc: true } as const;
      const over = await append(appender, createAppend(kid, { gpc: true, entries: [{ ...entry!, detail }] }));
      expect(await stateOf(other, kid)).toMatchObject({
        gpc: true,
        event: { choice: 'granted', overGpc: true },
      });
      expect(await opens(other, kid, over.entries[0]!.seq)).toBe(true);
      await append(appender, createAppend(kid, { gpc: true }));
      expect(await stateOf(other, kid)).toMatchObject({ event: { choice: 'granted', overGpc: false } });
    });

    it('commits to the person and to the circumstances, under a salt of its own', async () => {
      const kid = await addLog(db.database, 'salted');
      const appender = createAppender(db.database);
      await append(appender, createAppend(kid));
      await append(appender, createAppend(kid));
      const [, , one, two] = (await allEntries(other, kid)).map(
        ({ entry }) => JSON.parse(entry) as Record<string, string>,
      );
      expect(one).toMatchObject({ type: 'consent.granted', purpose: PURPOSE });
      expect(one?.['subject']).not.toBe(two?.['subject']);
      expect(one?.['body']).not.toBe(two?.['body']);
      expect([await opens(other, kid, 2), await opens(other, kid, 3)]).toEqual([true, true]);
    });

    it('a withdrawal is seen at once on another connection', async () => {
      const kid = await addLog(db.database, 'at-once');
      const appenders = [createAppender(db.database), createAppender(other)] as const;
      const choices: unknown[] = [];
      for (const i of numbers(10)) {
        const [here, there] = i % 2 === 0 ? appenders : [appenders[1], appenders[0]];
        const reader = i % 2 === 0 ? other : db.database;
        await append(here, createAppend(kid));
        choices.push((await stateOf(reader, kid)).event?.choice);
        await append(there, createAppend(kid, { choice: 'withdrawn' }));
        choices.push((await stateOf(i % 2 === 0 ? db.database : other, kid)).event?.choice);
      }
      expect(choices).toEqual(numbers(10).flatMap(() => ['granted', 'withdrawn']));
    });

    it('two nodes with two appenders each write 4 × 100 without a gap or a fork', async () => {
      const kid = await addLog(db.database, 'race');
      const appenders = [db.database, other, db.database, other].map(createAppender);
      const answers = await Promise.all(
        appenders.flatMap((appender, node) =>
          numbers(100).map((i) => append(appender, createAppend(kid, { principalId: `${node}-${i}` }))),
        ),
      );
      const seqs = answers.flatMap(({ entries }) => entries.map(({ seq }) => seq));
      expect(seqs.sort((a, b) => a - b)).toEqual(numbers(400).map((i) => i + 2));
      const { stored, computed } = await auditLog(other, kid);
      expect(stored).toEqual(computed);
      expect(stored.size).toBe(402);
    });

    it('the last of many writes of one person, on two nodes, is the one that counts', async () => {
      const kid = await addLog(db.database, 'last');
      const appenders = [createAppender(db.database), createAppender(other)];
      await Promise.all(
        numbers(60).map((i) => {
          const choice = (['granted', 'withdrawn', 'denied'] as const)[i % 3] ?? 'granted';
          return append(appenders[i % 2]!, createAppend(kid, { choice }));
        }),
      );
      const page = { before: null, limit: 100 };
      const history = await listHistory(other, kid, 'ref-anna', page);
      expect(history.map(({ seq }) => seq)).toEqual(numbers(60).map((i) => 61 - i));
      expect((await stateOf(other, kid)).event).toMatchObject({ seq: 61, choice: history[0]?.choice });
      const opened = await Promise.all(history.map(({ seq }) => opens(other, kid, seq)));
      expect(new Set(opened)).toEqual(new Set([true]));
    });

    it('keeps the order of one turn', async () => {
      const kid = await addLog(db.database, 'turn');
      const appender = createAppender(db.database);
      const choices = ['granted', 'withdrawn', 'granted', 'denied'] as const;
      await Promise.all(choices.map((choice) => append(appender, createAppend(kid, { choice }))));
      const history = await listHistory(other, kid, 'ref-anna', { before: null, limit: 10 });
      expect(history.map(({ choice }) => choice)).toEqual([...choices].reverse());
      expect((await stateOf(other, kid)).event?.choice).toBe('denied');
    });

    it('keeps tenants apart, also in one turn', async () => {
      const kids = [await addLog(db.database, 'apart-b'), await addLog(db.database, 'apart-a')];
      const appender = createAppender(db.database);
      const requests = numbers(40).map((i) => createAppend(kids[i % 2] ?? '', { principalId: `p${i % 3}` }));
      const answers = await Promise.all(requests.map((request) => append(appender, request)));
      for (const [i, kid] of kids.entries()) {
        const ownSeqs = answers.filter((_, n) => n % 2 === i).map(({ entries }) => entries[0]?.seq);
        expect(ownSeqs).toEqual(numbers(20).map((n) => n + 2));
        const { stored, computed } = await auditLog(other, kid);
        expect(stored).toEqual(computed);
      }
      expect(await principalKey(other, 'apart-a', 'p0')).not.toEqual(
        await principalKey(other, 'apart-b', 'p0'),
      );
    });

    it('takes a full batch of writes that name 40 purposes each, for a webhook', async () => {
      const kid = await addLog(db.database, 'wide');
      const appender = createAppender(db.database);
      const [one] = createAppend(kid).entries;
      const entries = numbers(40).map((i) => ({ ...one!, purpose: `purpose-${i}` }));
      const requests = numbers(200).map((i) =>
        createAppend(kid, { principalId: `w${i}`, entries, notify: tell(1) }),
      );
      expect(await appendAll(appender, requests)).toEqual(['written']);
      expect(await allEntries(other, kid)).toHaveLength(8002);
      expect((await stateOf(other, kid, 'w199', 'purpose-39')).event?.seq).toBe(8001);
      expect(await other.read('webhook_outbox').where({ kid })).toHaveLength(8000);
    });

    it('takes a full batch of people with a key each, told to three webhooks', async () => {
      const kid = await addLog(db.database, 'told');
      const requests = numbers(200).map((i) => {
        const idempotency = { caller: 'key_1', key: `k${i}`, bodyHash: 'body' };
        return createAppend(kid, { principalId: `t${i}`, notify: tell(3), idempotency });
      });
      expect(await appendAll(createAppender(db.database), requests)).toEqual(['written']);
      expect(await other.read('webhook_outbox').where({ kid })).toHaveLength(600);
      expect(await other.read('consent_principals').where({ kid })).toHaveLength(200);
    });

    it('writes nothing of a batch that fails, and serves the next one', async () => {
      const kid = await addLog(db.database, 'fails');
      let broken = true;
      const appender = createAppender(db.database);
      const notify = (): [] => {
        if (broken) throw new Error('no key');
        return [];
      };
      const requests = numbers(3).map((i) => createAppend(kid, { principalId: `f${i}`, notify }));
      const failed = await Promise.allSettled(requests.map((request) => appender.append(request)));
      expect(failed.map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
      expect(await allEntries(other, kid)).toHaveLength(2);
      broken = false;
      expect((await append(appender, createAppend(kid, { notify }))).entries[0]?.seq).toBe(2);
    });

    it('leaves the log as it was when the state cannot be written', async () => {
      const kid = await addLog(db.database, 'atomic');
      const [entry] = createAppend(kid).entries;
      const bad = { ...entry!, purpose: null as unknown as string };
      const request = createAppend(kid, { entries: [entry!, bad] });
      await expect(createAppender(db.database).append(request)).rejects.toThrow();
      expect(await allEntries(other, kid)).toHaveLength(2);
      expect((await stateOf(other, kid)).event).toBeNull();
      const { stored, computed } = await auditLog(other, kid);
      expect(stored).toEqual(computed);
    });

    it('remembers GPC until a grant of the purpose says otherwise', async () => {
      const kid = await addLog(db.database, 'gpc');
      const appender = createAppender(db.database);
      const gpcStates: boolean[] = [];
      for (const gpc of [true, undefined, false, undefined, true]) {
        await append(appender, createAppend(kid, { gpc }));
        gpcStates.push((await stateOf(other, kid)).gpc);
      }
      expect(gpcStates).toEqual([true, true, false, false, true]);
    });

    it('keeps the opt-out of each purpose apart, also within one batch', async () => {
      const kid = await addLog(db.database, 'gpc-each');
      const appender = createAppender(db.database);
      const [entry] = createAppend(kid).entries;
      const write = (gpc: boolean, purpose: string, choice: ConsentChoice = 'granted') =>
        append(appender, createAppend(kid, { gpc, choice, entries: [{ ...entry!, purpose, choice }] }));
      const out = async (): Promise<string[]> => {
        const all = ['ads', 'mail', 'new'].map(async (purpose) => {
          const { gpc } = await stateOf(other, kid, 'anna', purpose);
          return gpc ? [purpose] : [];
        });
        return (await Promise.all(all)).flat();
      };
      await write(true, 'ads');
      expect(await out()).toEqual(['ads', 'mail', 'new']);
      await Promise.all([write(false, 'ads'), write(false, 'mail', 'withdrawn')]);
      expect(await out()).toEqual(['mail', 'new']);
      await Promise.all([write(false, 'mail'), write(false, 'new')]);
      expect(await out()).toEqual([]);
      await write(true, 'mail', 'withdrawn');
      expect(await out()).toEqual(['ads', 'mail', 'new']);
    });
  });
}
