import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ORIGIN, OTHER_ORIGIN } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { ask, type Reply } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { createBrowser, PURPOSE, startApi } from './support/api.ts';

/** A page is limited by the rules of a publishable key and by CORS. */

const GRANT = '/v1/consent/grant';
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const api = started(() => startApi());

function byBrowser(body: object, origin: string | null = ORIGIN, action = 'grant'): Promise<Reply> {
  const headers = origin === null ? {} : { origin };
  const fields = { purposes: [PURPOSE], ...body };
  return api.post(`/v1/consent/${action}`, fields, api.keys.publishable, headers);
}

function readState(body: object, origin: string | null = ORIGIN): Promise<Reply> {
  const headers = origin === null ? {} : { origin };
  return api.post('/v1/consent/state', body, api.keys.publishable, headers);
}

describe('a publishable key', () => {
  it('reads the state of a browser that shows its secret: what a backend or an erasure changed too', async () => {
    const browser = createBrowser();
    const readPurpose = async () => {
      const reply = await readState(browser);
      expect(reply).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
      expect(reply.headers['access-control-allow-origin']).toBe(ORIGIN);
      expect(reply.text).not.toContain(browser.principalSecret);
      return (reply.json() as { purposes: object[] }).purposes[0];
    };
    expect(await readPurpose()).toMatchObject({ purpose: PURPOSE, choice: null, reason: 'never-asked' });
    await byBrowser(browser);
    expect(await readPurpose()).toMatchObject({ allowed: true, choice: 'granted' });
    await api.write('withdraw', { principalId: browser.principalId });
    expect(await readPurpose()).toMatchObject({ allowed: false, reason: 'withdrawn' });
    const session = await api.session(browser.principalId);
    expect((await api.post('/v1/principals/erase', {}, session)).status).toBe(200);
    expect(await readPurpose()).toMatchObject({ allowed: false, reason: 'erased' });
  });

  it('grants, denies and withdraws for a browser that shows its secret', async () => {
    const browser = createBrowser();
    for (const [action, reason] of [
      ['grant', 'granted'],
      ['withdraw', 'withdrawn'],
      ['deny', 'denied'],
    ] as const) {
      expect((await byBrowser(browser, ORIGIN, action)).status).toBe(201);
      expect(await api.check(browser.principalId)).toMatchObject({ reason });
    }
    const sources = (await api.events(browser.principalId)).map(({ source }) => source);
    expect(sources).toEqual(['browser', 'browser', 'browser']);
  });

  it('under Sec-GPC is a grant under GPC, unless the page says that the person lifted it', async () => {
    const browser = createBrowser();
    const grant = (fields: object, headers: Record<string, string>) =>
      api.post(GRANT, { ...browser, purposes: [PURPOSE], ...fields }, api.keys.publishable, {
        origin: ORIGIN,
        ...headers,
      });
    expect((await grant({}, { 'sec-gpc': '1' })).status).toBe(201);
    expect(await api.check(browser.principalId)).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
    expect((await grant({}, {})).status).toBe(201);
    expect(await api.check(browser.principalId)).toMatchObject({ reason: 'gpc-opt-out' });
    expect((await grant({ gpc: false }, { 'sec-gpc': '1' })).status).toBe(201);
    expect(await api.check(browser.principalId)).toMatchObject({ reason: 'granted' });
  });

  it('a backend speaks for its user, and its own headers say nothing about them', async () => {
    const { principalId } = createBrowser();
    const grant = { principalId, purposes: [PURPOSE] };
    expect((await api.post(GRANT, grant, api.keys.secret, { 'sec-gpc': '1' })).status).toBe(201);
    expect(await api.check(principalId)).toMatchObject({ reason: 'granted' });
  });

  it.each([
    ['no origin', null],
    ['an origin that nobody registered', 'https://elsewhere.example'],
    ['the origin of another tenant', OTHER_ORIGIN],
    ['the null of a sandbox', 'null'],
    ['a subdomain', ORIGIN.replace('//', '//www.')],
    ['a trailing slash', `${ORIGIN}/`],
  ])('%s: 403', async (_what, origin) => {
    const browser = createBrowser();
    expectError(await readState(browser, origin), 'origin-not-allowed');
    expectError(await byBrowser(browser, origin), 'origin-not-allowed');
    expect(await api.check(browser.principalId)).toMatchObject({ reason: 'never-asked' });
  });

  const victim = createBrowser();
  const secretBytes = Buffer.from(victim.principalSecret, 'base64url');
  /** Decodes to the same bytes: the last character holds two bits that mean nothing. */
  const alias = victim.principalSecret.replace(/.$/, (last) => BASE64URL[BASE64URL.indexOf(last) + 1] ?? '');
  it.each([
    ['no secret', { principalId: victim.principalId }],
    ['the secret of another browser', { ...victim, principalSecret: createBrowser().principalSecret }],
    ['a person who is no browser', { ...victim, principalId: 'anna' }],
    ['the id without its prefix', { ...victim, principalId: victim.principalId.slice(2) }],
    ['another spelling of the secret', { ...victim, principalSecret: alias }],
    ['the id for the secret', { ...victim, principalSecret: victim.principalId.slice(2) }],
    ['a padded secret', { ...victim, principalSecret: secretBytes.toString('base64') }],
    ['a secret in hex', { ...victim, principalSecret: secretBytes.toString('hex') }],
    ['half a secret', { ...victim, principalSecret: victim.principalSecret.slice(0, 21) }],
    ['an empty secret', { ...victim, principalSecret: '' }],
    ['a secret that is no base64url', { ...victim, principalSecret: 'käthe\u0000' }],
    [
      'the hash of fewer bytes',
      {
        principalId: `b_${createHash('sha256').update(secretBytes.subarray(1)).digest('base64url')}`,
        principalSecret: secretBytes.subarray(1).toString('base64url'),
      },
    ],
  ])('%s: 403', async (_what, body) => {
    expectError(await byBrowser(body), 'not-your-principal');
    expectError(await readState(body), 'not-your-principal');
    expect(await api.check(victim.principalId)).toMatchObject({ reason: 'never-asked' });
  });

  it('the secret is neither stored nor returned', async () => {
    const browser = createBrowser();
    const reply = await byBrowser(browser);
    expect(reply.text).not.toContain(browser.principalSecret);
    const history = await api.post('/v1/consent/history', { principalId: browser.principalId });
    expect(history.text).not.toContain(browser.principalSecret);
    expect(api.gpd.logs()).not.toContain(browser.principalSecret);
  });
});

describe('CORS', () => {
  const preflight = (path: string, origin: string): Promise<Reply> =>
    ask(api.gpd.url, path, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,idempotency-key',
      },
    });

  const PATHS = ['/v1/consent/can-process', GRANT, '/v1/consent/purposes', '/v1/principals/erase'];

  it.each(PATHS)('a preflight of %s lets a registered origin send its credential', async (path) => {
    const { status, headers, text } = await preflight(path, ORIGIN);
    expect({ status, text }).toEqual({ status: 204, text: '' });
    expect(headers['access-control-allow-origin']).toBe(ORIGIN);
    expect(headers['access-control-allow-credentials']).toBe('true');
    expect(headers.vary).toContain('Origin');
    const allowed = headers['access-control-allow-headers']?.toLowerCase().split(/,\s*/);
    expect(allowed).toEqual(expect.arrayContaining(['authorization', 'content-type', 'idempotency-key']));
    expect(headers['access-control-allow-methods']?.split(/,\s*/)).toEqual(
      expect.arrayContaining(['GET', 'POST', 'PUT']),
    );
  });

  it.each(PATHS)('a preflight of %s promises a stranger nothing', async (path) => {
    for (const origin of ['https://elsewhere.example', 'null', `${ORIGIN}.evil.example`]) {
      const { status, headers } = await preflight(path, origin);
      expect(status).toBe(204);
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
      expect(headers.vary).toContain('Origin');
    }
  });

  /** The status for a session of the person: it may not check. */
  const BODIES = [
    ['/v1/consent/can-process', { principalId: 'a', purpose: PURPOSE }, 403],
    ['/v1/consent/state', { principalId: 'a' }, 200],
  ] as const;

  it.each(BODIES)('%s says so on answers and on errors', async (path, body, forSession) => {
    const session = await api.session('a');
    const replies = [
      await api.post(path, body, session, { origin: ORIGIN }),
      await api.post(path, body, '', { origin: ORIGIN }),
      await api.post(path, body, undefined, { origin: ORIGIN }),
      await api.post(path, body, api.keys.publishable, { origin: ORIGIN }),
      await ask(api.gpd.url, path, { headers: { origin: ORIGIN } }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([forSession, 401, 403, 403, 405]);
    for (const { headers } of replies) {
      expect(headers['access-control-allow-origin']).toBe(ORIGIN);
      expect(headers['access-control-expose-headers']).toContain('Retry-After');
      expect(headers.vary).toContain('Origin');
    }
  });

  it.each(BODIES)('%s tells a stranger nothing, and varies by origin all the same', async (path, body) => {
    for (const headers of [{}, { origin: 'https://elsewhere.example' }]) {
      const reply = await api.post(path, body, undefined, headers);
      expect(reply.status).toBe(200);
      expect(reply.headers['access-control-allow-origin']).toBeUndefined();
      expect(reply.headers.vary).toContain('Origin');
    }
  });
});
