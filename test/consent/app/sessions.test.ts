import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sessionResponseSchema } from '../../../src/schema/consent.ts';
import { dumpDatabase } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import { type Api, expireSession, PURPOSE, startApi } from './support/api.ts';

const CREATE = ['apikeys', 'create', 'acme', '--scope', 'secret', '--name', 'backend'];

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

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

  it('is another one each time', async () => {
    expect(await api.session('twice')).not.toBe(await api.session('twice'));
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
    const other = await api.gpd.json<{ id: string; key: string }>(CREATE);
    const opened = await api.post('/v1/sessions', { principalId: 'dana' }, other.key);
    const { token: ending } = opened.json() as { token: string };
    const choice = { principalId: 'dana', purposes: [PURPOSE] };
    expect((await api.post('/v1/consent/grant', choice, ending)).status).toBe(201);
    await api.gpd.json(['apikeys', 'revoke', other.id]);
    for (const path of [
      '/v1/consent/withdraw',
      '/v1/consent/state',
      '/v1/principals/erase',
      '/v1/principals/link',
    ])
      expectError(await api.post(path, choice, ending), 'unauthenticated');
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

describe('nobody is named in the database', () => {
  it('after a grant, a denial and a withdrawal', async () => {
    for (const action of ['grant', 'deny', 'withdraw'] as const) {
      await api.write(action, { principalId: 'another-name-that-stands-out' });
    }
    expect(JSON.stringify(await dumpDatabase(api.gpd.dataDir))).not.toContain('another-name-that-stands-out');
  });
});
