import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiKeySecret, hashSecret } from '../../../src/auth/credentials.ts';
import { type Database, openDatabase } from '../../../src/db/engine.ts';
import type { KeyScope } from '../../../src/schema/route.ts';
import { createApiKeyStore } from '../../../src/tenants/api-key-store.ts';
import { operatorAt } from '../../support/act.ts';
import { KID } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { type Api, PURPOSE, startApi } from './support/api.ts';

/** A key that was made a moment ago is never refused (contract 2, section 12). */

const CHECK = { principalId: 'a', purpose: PURPOSE };

let api: Api;
let database: Database;
beforeAll(async () => {
  api = await startApi();
  database = await openDatabase({ location: join(api.gpd.dataDir, 'gpd.db') });
});
afterAll(async () => {
  await database.close();
  await api.stop();
});

/** A connection besides the server's creates the key, as `gpd apikeys create` does. */
async function createKey(scope: KeyScope): Promise<{ id: string; key: string }> {
  const key = createApiKeySecret(scope, randomBytes);
  const hash = hashSecret(key);
  const id = `key_${hash.slice(0, 26)}`;
  const times = { createdAt: Date.now(), revokedAt: null, lastUsedOn: null };
  await createApiKeyStore(database).insert(
    { id, kid: KID, scope, name: 'new', hash, ...times },
    operatorAt(Date.now()),
  );
  return { id, key };
}

describe('a key that was made a moment ago', () => {
  it('is taken at once, 50 times, in the hot lane and on every other route', {
    timeout: 60_000,
  }, async () => {
    const answers: number[] = [];
    for (let i = 0; i < 25; i += 1) {
      answers.push(
        (await api.post('/v1/consent/can-process', CHECK, (await createKey('secret')).key)).status,
      );
      answers.push((await api.get('/v1/ledger/vkey', (await createKey('read-only')).key)).status);
    }
    expect(answers).toEqual(Array.from({ length: 50 }, () => 200));
  });

  it('for a tenant that was made a moment ago', async () => {
    await api.gpd.json(['tenants', 'add', 'newborn']);
    const words = ['apikeys', 'create', 'newborn', '--scope', 'secret', '--name', 'backend'];
    const { key } = await api.gpd.json<{ key: string }>(words);
    expect((await api.get('/v1/ledger/vkey', key)).text).toContain('newborn');
  });

  it('although somebody at the same address tries keys that nobody has', async () => {
    const guesses = Array.from({ length: 100 }, () =>
      api.post('/v1/consent/can-process', CHECK, createApiKeySecret('secret', randomBytes)),
    );
    const { key } = await createKey('secret');
    expect((await api.post('/v1/consent/can-process', CHECK, key)).status).toBe(200);
    for (const guess of await Promise.all(guesses)) expectError(guess, 'unauthenticated');
  });
});

it('a key that is revoked stays revoked', async () => {
  const { id, key } = await createKey('secret');
  expect((await api.post('/v1/consent/can-process', CHECK, key)).status).toBe(200);
  await createApiKeyStore(database).revoke(id, operatorAt(Date.now()));
  await expect
    .poll(async () => (await api.post('/v1/consent/can-process', CHECK, key)).status, {
      timeout: 20_000,
      interval: 50,
    })
    .toBe(401);
  for (let i = 0; i < 5; i += 1) {
    expectError(await api.post('/v1/consent/can-process', CHECK, key), 'unauthenticated');
  }
});
