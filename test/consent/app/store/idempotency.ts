import { beforeAll, describe, expect, it } from 'vitest';
import type { AppendRequest } from '../../../../src/consent/plan-write.ts';
import { findSession, insertSession, purgeExpired } from '../../../../src/consent/sessions-store.ts';
import { createApiKeyStore } from '../../../../src/tenants/api-key-store.ts';
import { operatorAt } from '../../../support/act.ts';
import { NOW } from '../../../support/make.ts';
import { ensureTenant } from '../../../support/recorder.ts';
import { addLog, allEntries, append, createAppend, createAppender, type Nodes, numbers } from './fixture.ts';

const DAY_MS = 86_400_000;

function createKeyed(kid: string, key: string, over: Partial<AppendRequest> & { body?: string } = {}) {
  const { body = 'body', ...rest } = over;
  return createAppend(kid, { ...rest, idempotency: { caller: 'key_1', key, bodyHash: body } });
}

export function idempotencyContract(at: Nodes): void {
  describe('Idempotency-Key', () => {
    const countEntries = async (kid: string): Promise<number> => (await allEntries(at.other, kid)).length - 2;

    it('one of two simultaneous bodies on two nodes wins', async () => {
      const kid = await addLog(at.db, 'two-bodies');
      const appenders = [createAppender(at.db), createAppender(at.other)];
      const answers = await Promise.all(
        numbers(40).map((i) => appenders[i % 2]!.append(createKeyed(kid, 'k', { body: `body-${i % 4}` }))),
      );
      expect(answers.filter((answer) => answer === 'conflict')).toHaveLength(30);
      expect(await countEntries(kid)).toBe(1);
    });

    it('many keys in one turn, some twice, are answered each with its own', async () => {
      const kid = await addLog(at.db, 'mixed');
      const appender = createAppender(at.db);
      const keys = ['a', 'b', 'a', 'c', 'b', 'd'];
      const answers = await Promise.all(keys.map((key) => append(appender, createKeyed(kid, key))));
      const plain = await append(appender, createAppend(kid));
      expect(answers[0]).toEqual(answers[2]);
      expect(answers[1]).toEqual(answers[4]);
      expect(new Set(answers.map(({ entries }) => entries[0]?.seq))).toEqual(new Set([2, 3, 4, 5]));
      expect(plain.entries[0]?.seq).toBe(6);
    });
  });

  describe('sessions', () => {
    beforeAll(async () => {
      await ensureTenant(at.db, 'acme');
      await createKey('acme', 'key');
    });

    const createKey = async (kid: string, id: string): Promise<void> => {
      const key = { kid, id, scope: 'secret', name: '', hash: `of ${id}`, createdAt: NOW } as const;
      const store = createApiKeyStore(at.db);
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
      await insertSession(at.db, session, NOW);
      expect(await findSession(at.other, 'h1', NOW)).toEqual(session);
      expect(await findSession(at.other, 'h1', NOW + 899_999)).toEqual(session);
      expect(await findSession(at.other, 'h1', NOW + 900_000)).toBeNull();
      // A clock that was an hour ahead when it was opened would have made it live for an hour and a quarter.
      expect(await findSession(at.other, 'h1', NOW - 3_600_000)).toBeNull();
      expect(await findSession(at.other, 'h2', NOW)).toBeNull();
    });

    it('end with the key that opened them, also where it was revoked in the meantime or its tenant went', async () => {
      const open = (hash: string, keyId: string, kid = 'ending') =>
        insertSession(at.db, { ...createSession(hash), kid, keyId }, NOW);
      const isOpen = async (hash: string) => (await findSession(at.other, hash, NOW)) !== null;
      await ensureTenant(at.db, 'ending');
      await ensureTenant(at.db, 'beta');
      for (const id of ['k1', 'k2']) await createKey('ending', id);
      await open('by-k1', 'k1');
      await open('by-k2', 'k2');
      // The key of another tenant.
      await open('of-beta', 'k2', 'beta');
      expect(await Promise.all(['by-k1', 'by-k2', 'of-beta'].map(isOpen))).toEqual([true, true, false]);
      await createApiKeyStore(at.db).revoke('k1', operatorAt(NOW));
      await open('late', 'k1');
      const all = ['by-k1', 'late', 'by-k2'];
      expect(await Promise.all(all.map(isOpen))).toEqual([false, false, true]);
      expect(await at.other.read('principal_sessions').whereIn('hash', all).pluck('hash')).not.toContain(
        'by-k1',
      );
      await at.db.transaction((tx) => tx('tenants').where({ kid: 'ending' }).delete());
      expect(await isOpen('by-k2')).toBe(false);
    });

    it('are forgotten when they are over, with the answers of old writes', async () => {
      const kid = await addLog(at.db, 'purge');
      await append(createAppender(at.db), createKeyed(kid, 'k'));
      await insertSession(at.db, createSession('h3'), NOW);
      const readLeftovers = async () => [
        (await findSession(at.other, 'h3', NOW)) !== null,
        (await at.other.read('idempotency_keys').where({ kid })).length,
      ];
      await purgeExpired(at.db, NOW + 900_000);
      expect(await readLeftovers()).toEqual([true, 1]);
      await purgeExpired(at.db, NOW + 900_001);
      expect(await readLeftovers()).toEqual([false, 1]);
      await purgeExpired(at.other, NOW + DAY_MS + 1);
      expect(await readLeftovers()).toEqual([false, 0]);
    });
  });
}
