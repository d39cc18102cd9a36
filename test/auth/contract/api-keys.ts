import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type ApiKey, hashSecret } from '../../../src/auth/credentials.ts';
import { bump } from '../../../src/db/meta-store.ts';
import { createApiKeyStore } from '../../../src/tenants/api-key-store.ts';
import { addTenant, holdTransaction, type MakeDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';

function createKey(kid: string, id: string, over: Partial<ApiKey> = {}): ApiKey {
  const times = { createdAt: NOW, revokedAt: null, lastUsedOn: null };
  return { id, kid, scope: 'secret', name: 'bäckend ✓', hash: hashSecret(id), ...times, ...over };
}

export function apiKeyContract(make: MakeDatabase): void {
  describe('ApiKeyStore', () => {
    const { db, other } = twoNodes(make);

    it('keeps every field, lists by tenant and age, and none of an unknown tenant', async () => {
      const [one, two] = [await addTenant(db.database, 'list-1'), await addTenant(db.database, 'list-2')];
      const store = createApiKeyStore(db.database);
      const keys = [
        createKey(one, 'k-old', { scope: 'publishable' }),
        createKey(one, 'k-new', { createdAt: NOW + 1, scope: 'read-only' }),
        createKey(two, 'k-two', { createdAt: NOW - 1, scope: 'operator' }),
      ];
      for (const key of [keys[1]!, keys[2]!, keys[0]!])
        expect(await store.insert(key, operatorAt(NOW))).toBe(true);
      expect(await store.insert(createKey('nobody', 'k-0'), operatorAt(NOW))).toBe(false);
      const otherNode = createApiKeyStore(other);
      expect((await otherNode.list()).filter(({ kid }) => kid.startsWith('list-'))).toEqual(keys);
      expect(await otherNode.list(one)).toEqual([keys[0], keys[1]]);
      expect(await otherNode.list('nobody')).toEqual([]);
    });

    it('takes neither an id nor a hash twice', async () => {
      const kid = await addTenant(db.database, 'twice');
      const store = createApiKeyStore(db.database);
      const key = createKey(kid, 'k-once');
      await store.insert(key, operatorAt(NOW));
      await expect(store.insert(key, operatorAt(NOW))).rejects.toThrow();
      const sameHash = createKey(kid, 'k-other', { hash: key.hash });
      await expect(store.insert(sameHash, operatorAt(NOW))).rejects.toThrow();
      expect(await store.list(kid)).toEqual([key]);
    });

    it('revokes for good: the first time stays', async () => {
      const kid = await addTenant(db.database, 'revoked');
      const store = createApiKeyStore(db.database);
      const key = createKey(kid, 'k-revoked');
      await store.insert(key, operatorAt(NOW));
      const stored = { ...key, revokedAt: NOW + 5 };
      expect(await store.revoke('k-revoked', operatorAt(NOW + 5))).toEqual(stored);
      expect(await createApiKeyStore(other).revoke('k-revoked', operatorAt(NOW + 9))).toEqual(stored);
      expect(await store.revoke('k-none', operatorAt(NOW))).toBeNull();
      expect(await createApiKeyStore(other).list(kid)).toEqual([stored]);
    });

    it('answers two who revoke at once with what is stored', async () => {
      const kid = await addTenant(db.database, 'revoke-race');
      await createApiKeyStore(db.database).insert(createKey(kid, 'k-race'), operatorAt(NOW));
      const holder = await holdTransaction(db.database, (tx) => bump(tx, 'tenants'));
      const both = [1, 2].map((later) => createApiKeyStore(other).revoke('k-race', operatorAt(NOW + later)));
      await sleep(100);
      await holder.giveBack();
      const answers = await Promise.all(both);
      const [stored] = await createApiKeyStore(other).list(kid);
      expect(answers.map((key) => key?.revokedAt)).toEqual([stored?.revokedAt, stored?.revokedAt]);
    });

    it('notes a day of use, and nothing where there is no such key', async () => {
      const kid = await addTenant(db.database, 'touched');
      const store = createApiKeyStore(db.database);
      await store.insert(createKey(kid, 'k-touched'), operatorAt(NOW));
      await store.noteUse(kid, 'k-touched', '2025-11-20');
      await store.noteUse(kid, 'k-none', '2025-11-20');
      await store.noteUse('nobody', 'k-touched', '2025-12-31');
      expect((await createApiKeyStore(other).list(kid)).map((key) => key.lastUsedOn)).toEqual(['2025-11-20']);
    });
  });
}
