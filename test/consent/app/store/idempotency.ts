import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AppendRequest } from '../../../../src/consent/plan-write.ts';
import { findSession, insertSession, purgeExpired } from '../../../../src/consent/sessions.ts';
import type { Database } from '../../../../src/db/engine.ts';
import { createApiKeyStore } from '../../../../src/tenants/api-key-store.ts';
import type { MakeDatabase, TestDatabase } from '../../../db/contract/database.ts';
import { operatorAt } from '../../../support/act.ts';
import { NOW } from '../../../support/make.ts';
import { ensureTenant } from '../../../support/recorder.ts';
import { shredPrincipal } from '../../../support/shred-principal.ts';
import { addLog, allEntries, append, createAppend, createAppender, macOf, WRAP_KEY } from './fixture.ts';

const DAY_MS = 86_400_000;
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

function createKeyed(
  kid: string,
  key: string,
  over: Partial<AppendRequest> & { body?: string; caller?: string } = {},
) {
  const { body = 'body', caller = 'key_1', ...rest } = over;
  return createAppend(kid, { ...rest, idempotency: { caller, key, bodyHash: body } });
}

export function idempotencyContract(make: MakeDatabase): void {
  describe('Idempotency-Key', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const countEntries = async (kid: string): Promise<number> => (await allEntries(other, kid)).length - 2;

    it('is known on another node, by another appender', async () => {
      const kid = await addLog(db.database, 'known');
      const first = await append(createAppender(db.database), createKeyed(kid, 'k'));
      expect(await append(createAppender(other), createKeyed(kid, 'k', { now: NOW + 5 }))).toEqual(first);
      expect(await createAppender(other).append(createKeyed(kid, 'k', { body: 'another' }))).toBe('conflict');
      expect(await countEntries(kid)).toBe(1);
    });

    it('answers on every node that the person was erased, until the key expires', async () => {
      const kid = await addLog(db.database, 'erased-since');
      await append(createAppender(db.database), createKeyed(kid, 'k'));
      await append(createAppender(db.database), createKeyed(kid, 'k2', { principalId: 'bea' }));
      const target = { kid, principal: 'ref-anna', principalId: 'anna', wrapKey: WRAP_KEY };
      await shredPrincipal(db.database, { ...target, stateMac: macOf(kid), notify: () => [] }, NOW);
      const size = await countEntries(kid);
      expect(await createAppender(other).append(createKeyed(kid, 'k'))).toBe('erased');
      expect(await createAppender(other).append(createKeyed(kid, 'k2', { principalId: 'bea' }))).not.toBe(
        'erased',
      );
      expect(await createAppender(other).append(createKeyed(kid, 'k', { caller: 'key_2' }))).not.toBe(
        'erased',
      );
      expect(await countEntries(kid)).toBe(size + 1);
      await purgeExpired(db.database, NOW + DAY_MS + 1);
      expect(await createAppender(other).append(createKeyed(kid, 'k'))).not.toBe('erased');
    });

    it('twenty at once on each of two nodes write one entry', async () => {
      const kid = await addLog(db.database, 'at-once');
      const appenders = [createAppender(db.database), createAppender(other)];
      const answers = await Promise.all(
        numbers(40).map((i) => append(appenders[i % 2]!, createKeyed(kid, 'k'))),
      );
      expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
      expect(await countEntries(kid)).toBe(1);
    });

    it('one of two simultaneous bodies on two nodes wins', async () => {
      const kid = await addLog(db.database, 'two-bodies');
      const appenders = [createAppender(db.database), createAppender(other)];
      const answers = await Promise.all(
        numbers(40).map((i) => appenders[i % 2]!.append(createKeyed(kid, 'k', { body: `body-${i % 4}` }))),
      );
      expect(answers.filter((answer) => answer === 'conflict')).toHaveLength(30);
      expect(await countEntries(kid)).toBe(1);
    });

    it('many keys in one turn, some twice, are answered each with its own', async () => {
      const kid = await addLog(db.database, 'mixed');
      const appender = createAppender(db.database);
      const keys = ['a', 'b', 'a', 'c', 'b', 'd'];
      const answers = await Promise.all(keys.map((key) => append(appender, createKeyed(kid, key))));
      const plain = await append(appender, createAppend(kid));
      expect(answers[0]).toEqual(answers[2]);
      expect(answers[1]).toEqual(answers[4]);
      expect(new Set(answers.map(({ entries }) => entries[0]?.seq))).toEqual(new Set([2, 3, 4, 5]));
      expect(plain.entries[0]?.seq).toBe(6);
    });

    it('belongs to a caller and a tenant', async () => {
      const kid = await addLog(db.database, 'callers');
      const second = await addLog(db.database, 'callers-2');
      const appender = createAppender(db.database);
      const answers = [
        await append(appender, createKeyed(kid, 'k')),
        await append(appender, createKeyed(kid, 'k', { caller: 'key_2', body: 'another' })),
        await append(appender, createKeyed(second, 'k', { body: 'another' })),
      ];
      expect(answers.map(({ entries }) => entries[0]?.seq)).toEqual([2, 3, 2]);
    });

    it('lasts 24 hours', async () => {
      const kid = await addLog(db.database, 'lasts');
      const appender = createAppender(db.database);
      await append(appender, createKeyed(kid, 'k'));
      await append(appender, createKeyed(kid, 'k', { now: NOW + DAY_MS - 1 }));
      expect(await countEntries(kid)).toBe(1);
      const afterExpiry = await append(
        appender,
        createKeyed(kid, 'k', { now: NOW + DAY_MS, body: 'another' }),
      );
      expect(afterExpiry.entries[0]?.seq).toBe(3);
      const again = createKeyed(kid, 'k', { now: NOW + DAY_MS + 1, body: 'another' });
      expect(await append(appender, again)).toEqual(afterExpiry);
    });
  });

  describe('sessions', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
      await ensureTenant(db.database, 'acme');
      await createKey('acme', 'key');
    });
    afterAll(() => db.close());

    const createKey = async (kid: string, id: string): Promise<void> => {
      const key = { kid, id, scope: 'secret', name: '', hash: `of ${id}`, createdAt: NOW } as const;
      const store = createApiKeyStore(db.database);
      expect(await store.insert({ ...key, revokedAt: null, lastUsedOn: null }, operatorAt(NOW))).toBe(true);
    };
    const createSession = (hash: string) => ({
      hash,
      kid: 'acme',
      principal: 'ref-anna',
      wrappedPrincipalId: 'wrapped',
      expiresAt: NOW + 900_000,
      keyId: 'key',
    });

    it('are found on every node until they expire', async () => {
      const session = createSession('h1');
      await insertSession(db.database, session, NOW);
      expect(await findSession(other, 'h1', NOW)).toEqual(session);
      expect(await findSession(other, 'h1', NOW + 899_999)).toEqual(session);
      expect(await findSession(other, 'h1', NOW + 900_000)).toBeNull();
      // A clock that was an hour ahead when it was opened would have made it live for an hour and a quarter.
      expect(await findSession(other, 'h1', NOW - 3_600_000)).toBeNull();
      expect(await findSession(other, 'h2', NOW)).toBeNull();
    });

    it('end with the key that opened them, also where it was revoked in the meantime or its tenant went', async () => {
      const open = (hash: string, keyId: string, kid = 'ending') =>
        insertSession(db.database, { ...createSession(hash), kid, keyId }, NOW);
      const isOpen = async (hash: string) => (await findSession(other, hash, NOW)) !== null;
      await ensureTenant(db.database, 'ending');
      await ensureTenant(db.database, 'beta');
      for (const id of ['k1', 'k2']) await createKey('ending', id);
      await open('by-k1', 'k1');
      await open('by-k2', 'k2');
      // The key of another tenant.
      await open('of-beta', 'k2', 'beta');
      expect(await Promise.all(['by-k1', 'by-k2', 'of-beta'].map(isOpen))).toEqual([true, true, false]);
      await createApiKeyStore(db.database).revoke('k1', operatorAt(NOW));
      await open('late', 'k1');
      const all = ['by-k1', 'late', 'by-k2'];
      expect(await Promise.all(all.map(isOpen))).toEqual([false, false, true]);
      expect(await other.read('principal_sessions').whereIn('hash', all).pluck('hash')).not.toContain(
        'by-k1',
      );
      await db.database.transaction((tx) => tx('tenants').where({ kid: 'ending' }).delete());
      expect(await isOpen('by-k2')).toBe(false);
    });

    it('are forgotten when they are over, with the answers of old writes', async () => {
      const kid = await addLog(db.database, 'purge');
      await append(createAppender(db.database), createKeyed(kid, 'k'));
      await insertSession(db.database, createSession('h3'), NOW);
      const readLeftovers = async () => [
        (await findSession(other, 'h3', NOW)) !== null,
        (await other.read('idempotency_keys').where({ kid })).length,
      ];
      await purgeExpired(db.database, NOW + 900_000);
      expect(await readLeftovers()).toEqual([true, 1]);
      await purgeExpired(db.database, NOW + 900_001);
      expect(await readLeftovers()).toEqual([false, 1]);
      await purgeExpired(other, NOW + DAY_MS + 1);
      expect(await readLeftovers()).toEqual([false, 0]);
    });
  });
}
