import { calculateJwkThumbprint, createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refreshedStateSchema, stateKeysSchema } from '../../../src/schema/consent.ts';
import { KID, ORIGIN, OTHER } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import { ask, type Reply } from '../../support/http.ts';
import { createKey, encodePart, macJws, signJws } from '../../support/jws.ts';
import { initGpd, startGpd } from '../../support/server.ts';
import { type Action, type Api, createBrowser, PURPOSE, startApi } from './support/api.ts';

/** The signed state from which a site's server renders a page without a call (contract-2 section 20). */

const MINUTE_MS = 60_000;
let now = Date.now();

let api: Api;
beforeAll(async () => {
  const purposes = [{ id: 'ads' }, { id: 'mail', gpc: 'ask' }, { id: 'orders', gpc: 'ignore' }] as const;
  api = await startApi({ purposes, clock: () => now });
});
afterAll(() => api.stop());

const keySet = async () =>
  stateKeysSchema.strict().parse((await api.get('/v1/consent/state-keys', '')).json());

/** The claims of a state, verified by the published key. */
async function claimsOf(state: string) {
  const { keys } = await keySet();
  const options = { algorithms: ['ES256'], currentDate: new Date(now) };
  return jwtVerify(state, createLocalJWKSet({ keys } as JSONWebKeySet), options);
}

const stateIn = (reply: Reply): string => (reply.json() as { state: string }).state;

type Browser = ReturnType<typeof createBrowser>;

const choose = (browser: Browser, action: Action, fields: object = {}) =>
  api.post(`/v1/consent/${action}`, { ...browser, purposes: [PURPOSE], ...fields }, api.keys.publishable, {
    origin: ORIGIN,
  });

async function grantedState(browser: Browser, fields: object = {}): Promise<string> {
  const reply = await choose(browser, 'grant', fields);
  expect(reply.status).toBe(201);
  return stateIn(reply);
}

const refresh = (state: unknown, fields: object = {}, key = api.keys.secret) =>
  api.post('/v1/consent/state/refresh', { state, ...fields }, key);

async function refreshed(state: string, fields: object = {}) {
  const reply = await refresh(state, fields);
  expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 200 });
  return refreshedStateSchema.strict().parse(reply.json());
}

describe('the state in an answer', () => {
  it('is an ES256 JWS with the claims of the contract, and never the principal’s id', async () => {
    const browser = createBrowser();
    const { principalId } = browser;
    const reply = await choose(browser, 'grant', { purposes: ['orders', 'ads'] });
    const { seq } = reply.json() as { seq: number };
    const state = stateIn(reply);
    const { payload, protectedHeader } = await claimsOf(state);
    const { keys } = await keySet();
    expect(protectedHeader).toEqual({ alg: 'ES256', kid: keys[0]?.kid, typ: 'JWT' });
    const { subject } = await api.check(principalId);
    const iat = Math.floor(now / 1000);
    expect(payload).toEqual({
      ...{ iss: api.gpd.url, kid: KID, sub: subject, iat, exp: iat + 300 },
      ...{ p: ['ads', 'orders'], seq },
    });
    expect(Buffer.from(state.split('.')[1] ?? '', 'base64url').toString()).not.toContain(principalId);
    await expect(claimsOf(`${state.slice(0, -4)}AAAA`)).rejects.toThrow('signature');
  });

  it('is the state after the write, of all that are joined', async () => {
    const browser = createBrowser();
    await grantedState(browser, { purposes: ['ads', 'orders'] });
    const session = await api.session('anna');
    expect((await api.post('/v1/principals/join', browser, session)).status).toBe(201);
    now += MINUTE_MS;
    const body = { principalId: 'anna', purposes: ['ads'] };
    const reply = await api.post('/v1/consent/withdraw', body, session);
    const { payload } = await claimsOf(stateIn(reply));
    expect(payload).toMatchObject({ p: ['orders'], seq: (reply.json() as { seq: number }).seq });
    const denied = await choose(browser, 'deny', { purposes: ['orders'] });
    expect((await claimsOf(stateIn(denied))).payload).toMatchObject({ p: [] });
  });

  it('comes to browsers and sessions, with a read too, and never to a key of a backend', async () => {
    const browser = createBrowser();
    const headers = { origin: ORIGIN };
    const read = await api.post('/v1/consent/state', browser, api.keys.publishable, headers);
    expect((await claimsOf(stateIn(read))).payload).toMatchObject({ p: [], seq: 0 });
    const body = { principalId: 'bert', purposes: [PURPOSE] };
    const session = await api.session('bert');
    await api.post('/v1/consent/grant', body, session);
    const personal = await api.post('/v1/consent/state', { principalId: 'bert' }, session);
    expect((await claimsOf(stateIn(personal))).payload).toMatchObject({ p: [PURPOSE] });
    for (const key of [api.keys.secret, api.keys.operator]) {
      expect((await api.post('/v1/consent/deny', body, key)).text).not.toContain('"state"');
      const reply = await api.post('/v1/consent/state', { principalId: 'bert' }, key);
      expect(reply.text).not.toContain('"state"');
    }
  });

  it('grants nothing where a row was forged, and the withdrawal is answered', async () => {
    const browser = createBrowser();
    await grantedState(browser, { purposes: ['ads', 'orders'] });
    await execute(api.gpd.dataDir, "UPDATE consent_state SET at = at + 1 WHERE purpose = 'orders'");
    const reply = await choose(browser, 'withdraw', { purposes: ['ads'] });
    expect(reply.status).toBe(201);
    const { seq } = reply.json() as { seq: number };
    expect((await claimsOf(stateIn(reply))).payload).toMatchObject({ p: [], seq });
  });
});

describe('GET /v1/consent/state-keys', () => {
  it('is a JWK set that everybody may read and keep for five minutes', async () => {
    const reply = await api.get('/v1/consent/state-keys', '');
    expect(reply.headers).toMatchObject({
      'cache-control': 'public, max-age=300',
      vary: 'Authorization, Origin',
    });
    const inPage = await api.get('/v1/consent/state-keys', '', { origin: ORIGIN });
    expect(inPage.headers['access-control-allow-origin']).toBe(ORIGIN);
    const { keys, tenant } = await keySet();
    expect(tenant).toBeUndefined();
    expect(keys).toHaveLength(1);
    expect(keys[0]?.kid).toBe(await calculateJwkThumbprint(keys[0] ?? {}));
  });

  it('has the same key after a new master key and a restart', async () => {
    const { dataDir } = await initGpd();
    const first = await startGpd({ dataDir });
    const before = (await ask(first.url, '/v1/consent/state-keys')).json();
    await first.json(['keys', 'rewrap', '--yes']);
    await first.stop();
    const second = await startGpd({ dataDir });
    expect((await ask(second.url, '/v1/consent/state-keys')).json()).toEqual(before);
    await second.stop();
    expect(before).not.toEqual(await keySet());
  });

  it('names the tenant of a credential, and refuses a wrong one', async () => {
    const { publishable, secret, operator, foreign, revoked } = api.keys;
    for (const [credential, tenant] of [
      [publishable, KID],
      [secret, KID],
      [api.keys['read-only'], KID],
      [operator, KID],
      [await api.session('carl'), KID],
      [foreign, OTHER],
    ] as const) {
      const reply = await api.get('/v1/consent/state-keys', credential);
      expect(reply.json()).toEqual({ ...(await keySet()), tenant });
      expect(reply.headers['cache-control']).toBe('private, max-age=300');
    }
    for (const credential of ['gpd_sk_nobody', revoked])
      expectError(await api.get('/v1/consent/state-keys', credential), 'unauthenticated');
  });
});

describe('POST /v1/consent/state/refresh', () => {
  it('answers a state of any age with the present one', async () => {
    const browser = createBrowser();
    const old = await grantedState(browser, { purposes: ['ads', 'orders'] });
    now += 400 * 24 * 60 * MINUTE_MS;
    await expect(claimsOf(old)).rejects.toThrow('exp');
    // The grants have expired since.
    expect(await refreshed(old)).toMatchObject({ purposes: [] });
    const { seq } = (await choose(browser, 'grant', { purposes: ['orders'] })).json() as { seq: number };
    const present = await refreshed(old);
    expect(present).toMatchObject({ purposes: ['orders'], seq });
    expect((await claimsOf(present.state)).payload).toMatchObject({ p: ['orders'], seq });
  });

  it('denies at once what another of those who are joined withdraws', async () => {
    const browser = createBrowser();
    const state = await grantedState(browser);
    await api.post('/v1/principals/join', browser, await api.session('dana'));
    now += MINUTE_MS;
    await api.write('withdraw', { principalId: 'dana' });
    expect(await refreshed(state)).toMatchObject({ purposes: [] });
  });

  it('heeds a signal of the request by each purpose’s policy, and records nothing', async () => {
    const browser = createBrowser();
    await grantedState(browser, { purposes: ['ads', 'mail', 'orders'], gpc: false });
    const over = { purposes: ['mail'], gpc: true, overGpc: true };
    const state = await grantedState(browser, over);
    await grantedState(browser, { purposes: ['ads'], gpc: false });
    const size = (await api.get('/v1/ledger/checkpoint')).text;
    const heeding = await refreshed(state, { gpc: true });
    expect(heeding.purposes).toEqual(['mail', 'orders']);
    expect((await claimsOf(heeding.state)).payload).toMatchObject({ p: ['mail', 'orders'] });
    expect((await refreshed(state, { gpc: false })).purposes).toEqual(['ads', 'mail', 'orders']);
    expect((await api.get('/v1/ledger/checkpoint')).text).toBe(size);
  });

  it('is 404 for an erased person at once, and again 200 after a new grant', async () => {
    const state = stateIn(
      await api.post(
        '/v1/consent/grant',
        { principalId: 'emil', purposes: [PURPOSE] },
        await api.session('emil'),
      ),
    );
    await api.post('/v1/principals/erase', {}, await api.session('emil'));
    expectError(await refresh(state), 'no-data');
    await api.write('grant', { principalId: 'emil' });
    expect(await refreshed(state)).toMatchObject({ purposes: [PURPOSE] });
  });

  it('is the same 404 for what is forged, of another tenant, or of nobody', async () => {
    const state = await grantedState(createBrowser());
    const [header = '', claims = '', signature = ''] = state.split('.');
    const payload = JSON.parse(Buffer.from(claims, 'base64url').toString()) as object;
    const [jwk] = (await keySet()).keys;
    const newcomer = createBrowser();
    const inPage = { origin: ORIGIN };
    const ofNobody = stateIn(await api.post('/v1/consent/state', newcomer, api.keys.publishable, inPage));
    const { foreign } = api.keys;
    const session = (await api.post('/v1/sessions', { principalId: 'x' }, foreign)).json() as {
      token: string;
    };
    const ofOther = stateIn(
      await api.post('/v1/consent/deny', { principalId: 'x', purposes: [PURPOSE] }, session.token),
    );
    const refused = [
      `${header}.${encodePart({ ...payload, p: ['ads'] })}.${signature}`,
      `${encodePart({ alg: 'none', typ: 'JWT' })}.${claims}.`,
      signJws({ alg: 'ES256', kid: jwk?.kid, typ: 'JWT', jwk }, payload, await createKey('ES256')),
      macJws({ alg: 'HS256', typ: 'JWT' }, payload, JSON.stringify(jwk)),
      'a.b.c',
      ofNobody,
      ofOther,
    ];
    const answers = await Promise.all(refused.map((one) => refresh(one)));
    for (const reply of answers) expectError(reply, 'no-data');
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expectError(await refresh(state, {}, foreign), 'no-data');
    expect((await refresh(ofOther, {}, foreign)).status).toBe(200);
  });

  it('is 400 for what is no JWS, and only for keys that read', async () => {
    const state = await grantedState(createBrowser());
    for (const bad of [undefined, null, 5, '', 'abc', 'a.b', 'a.b.c.d', 'ä.b.c', [state]])
      expectError(await refresh(bad), 'invalid-request');
    expectError(await refresh(state, { gpc: 'yes' }), 'invalid-request');
    expectError(await refresh(state, { principalId: 'a' }), 'invalid-request');
    for (const key of [api.keys['read-only'], api.keys.operator])
      expect((await refresh(state, {}, key)).status).toBe(200);
    expectError(await refresh(state, {}, api.keys.publishable), 'insufficient-scope');
    expectError(await refresh(state, {}, await api.session('fritz')), 'insufficient-scope');
    expectError(await refresh(state, {}, ''), 'unauthenticated');
  });
});
