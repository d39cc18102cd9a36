import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createApiKeySecret } from '../../../src/auth/credentials.ts';
import { sessionResponseSchema } from '../../../src/schema/consent.ts';
import { KID } from '../../support/constants.ts';
import { dumpDatabase } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import { started } from '../../support/started.ts';
import { expireSession, PURPOSE, startApi } from './support/api.ts';

const CHECK = '/v1/consent/can-process';
const ANYBODY = { principalId: 'a', purpose: PURPOSE };
const createWords = (kid: string) => ['apikeys', 'create', kid, '--scope', 'secret', '--name', 'backend'];

const api = started(() => startApi());

describe('a principal session', () => {
  it('lasts 15 minutes and names its principal', async () => {
    const before = Date.now();
    const reply = await api.post('/v1/sessions', { principalId: 'Zoë 🐢' });
    expect(reply.status).toBe(201);
    const session = sessionResponseSchema.strict().parse(reply.json());
    expect(session).toMatchObject({
      principalId: 'Zoë 🐢',
      token: expect.stringMatching(/^gpd_ps_[\w-]{43}$/),
    });
    const expiresAt = Date.parse(session.expiresAt);
    expect(expiresAt).toBeGreaterThanOrEqual(before + 900_000);
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + 900_000);
  });

  it('reads and writes what is its own', async () => {
    const token = await api.session('anna');
    const choice = { principalId: 'anna', purposes: [PURPOSE] };
    for (const action of ['deny', 'grant', 'withdraw']) {
      expect((await api.post(`/v1/consent/${action}`, choice, token)).status).toBe(201);
    }
    const history = await api.post('/v1/consent/history', { principalId: 'anna' }, token);
    expect(history.json()).toMatchObject({
      events: [{ source: 'session' }, { source: 'session' }, { source: 'session' }],
    });
    const state = await api.post('/v1/consent/state', { principalId: 'anna' }, token);
    expect(state.json()).toMatchObject({ purposes: [{ reason: 'withdrawn' }] });
    expect(await api.check('anna')).toMatchObject({ reason: 'withdrawn' });
  });

  it.each([
    ['grant', { principalId: 'ben', purposes: [PURPOSE] }],
    ['deny', { principalId: 'ben', purposes: [PURPOSE] }],
    ['withdraw', { principalId: 'ben', purposes: [PURPOSE] }],
    ['withdraw', { principalId: 'Anna', purposes: [PURPOSE] }],
    ['withdraw', { principalId: 'anna ', purposes: [PURPOSE] }],
    ['state', { principalId: 'ben' }],
    ['history', { principalId: 'ben' }],
  ])('may not %s for %j', async (action, body) => {
    await api.write('grant', { principalId: 'ben' });
    const token = await api.session('anna');
    expectError(await api.post(`/v1/consent/${action}`, body, token), 'not-your-principal');
    expect(await api.check('ben')).toMatchObject({ allowed: true });
  });

  it('is nobody once it has expired', async () => {
    const token = await api.session('cleo');
    const ask = () => api.post('/v1/consent/state', { principalId: 'cleo' }, token);
    expect((await ask()).status).toBe(200);
    await expireSession(api.gpd.dataDir, token);
    expectError(await ask(), 'unauthenticated');
  });

  it('ends with the key that opened it, and not with another one', async () => {
    const token = await api.session('dana');
    const ask = () => api.post('/v1/consent/state', { principalId: 'dana' }, token);
    const other = await api.gpd.json<{ id: string; key: string }>(createWords(KID));
    const opened = await api.post('/v1/sessions', { principalId: 'dana' }, other.key);
    const { token: ending } = opened.json() as { token: string };
    const choice = { principalId: 'dana', purposes: [PURPOSE] };
    expect((await api.post('/v1/consent/grant', choice, ending)).status).toBe(201);
    await api.gpd.json(['apikeys', 'revoke', other.id]);
    for (const path of ['consent/withdraw', 'consent/state', 'principals/erase', 'principals/link'])
      expectError(await api.post(`/v1/${path}`, choice, ending), 'unauthenticated');
    await expect.poll(async () => (await api.post(CHECK, ANYBODY, other.key)).status).toBe(401);
    // It stays revoked: no lookup of an unknown key brings it back.
    expectError(await api.post(CHECK, ANYBODY, other.key), 'unauthenticated');
    expect(await api.check('dana')).toMatchObject({ allowed: true });
    expect((await ask()).status).toBe(200);
  });

  it('is stored without its token and without the id of the person', async () => {
    const token = await api.session('a-name-that-stands-out');
    const dump = JSON.stringify(await dumpDatabase(api.gpd.dataDir));
    expect(dump).not.toContain(token.slice('gpd_ps_'.length));
    expect(dump).not.toContain('a-name-that-stands-out');
  });
});

it('nobody is named in the database after a grant, a denial and a withdrawal', async () => {
  for (const action of ['grant', 'deny', 'withdraw'] as const) {
    await api.write(action, { principalId: 'another-name-that-stands-out' });
  }
  expect(JSON.stringify(await dumpDatabase(api.gpd.dataDir))).not.toContain('another-name-that-stands-out');
});

/** Contract 2, section 12: a command beside the running server makes it. */
const addKey = async (kid = KID): Promise<string> =>
  (await api.gpd.json<{ key: string }>(createWords(kid))).key;

describe('a key that was made a moment ago', () => {
  it('is taken at once, each of twenty, in the hot lane and on every other route', async () => {
    const answers: number[] = [];
    for (let i = 0; i < 10; i += 1) {
      answers.push((await api.post(CHECK, ANYBODY, await addKey())).status);
      answers.push((await api.get('/v1/ledger/vkey', await addKey())).status);
    }
    expect(answers).toEqual(Array(20).fill(200));
  });

  it('for a tenant that was made a moment ago', async () => {
    await api.gpd.json(['tenants', 'add', 'newborn']);
    expect((await api.get('/v1/ledger/vkey', await addKey('newborn'))).text).toContain('newborn');
  });

  it('although somebody at the same address tries keys that nobody has', async () => {
    const guesses = Array.from({ length: 100 }, () =>
      api.post(CHECK, ANYBODY, createApiKeySecret('secret', randomBytes)),
    );
    expect((await api.post(CHECK, ANYBODY, await addKey())).status).toBe(200);
    for (const guess of await Promise.all(guesses)) expectError(guess, 'unauthenticated');
  });
});
