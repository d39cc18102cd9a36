import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../src/schema/limits.ts';
import type { LimitName, Route } from '../../src/schema/route.ts';
import { ALL_ROUTES } from '../../src/schema/routes.ts';
import { expectError } from '../support/expect.ts';
import { ask, type Reply } from '../support/http.ts';
import { type Gpd, startGpd } from '../support/server.ts';

/** Each route counts in the limit that docs/limits.md names, and a page that is equal for everyone is made once. */

/** No two are equal, so that the number of answers names the limit. */
const POINTS = { public: 2, privacy: 3, ingest: 4, login: 5, client: 6, withdrawal: 7 } as const;

let gpd: Gpd;
beforeAll(async () => {
  gpd = await startGpd({
    settings: {
      GPD_TRUSTED_PROXIES: '127.0.0.1',
      GPD_RATE_PUBLIC: `${POINTS.public}/600`,
      GPD_RATE_PRIVACY: `${POINTS.privacy}/600`,
      GPD_RATE_INGEST: `${POINTS.ingest}/600`,
      GPD_RATE_LOGIN: `${POINTS.login}/600`,
      GPD_RATE_CONSENT_CLIENT: `${POINTS.client}/600`,
      GPD_RATE_CONSENT_WITHDRAW: `${POINTS.withdrawal}/600`,
    },
  });
});
afterAll(() => gpd.stop());

let clients = 0;
/** A new client behind the proxy. */
const nextClient = () => ({
  'x-forwarded-for': `198.51.${Math.floor(++clients / 250)}.${1 + (clients % 250)}`,
});

/** @returns how many requests of one client are answered before the first 429; at most ten */
async function countAnswered(method: string, path: string, headers: Record<string, string> = {}) {
  const client = { ...nextClient(), ...headers };
  for (let answered = 0; answered < 10; answered += 1) {
    const reply = await ask(gpd.url, path, { method, headers: client });
    if (reply.status !== 429) continue;
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0);
    return answered;
  }
  return 10;
}

const ANONYMOUS: Readonly<Record<LimitName, number>> = {
  none: 10,
  public: POINTS.public,
  privacy: POINTS.privacy,
  ingest: POINTS.ingest,
  consent: POINTS.public,
  'consent-by-client': POINTS.public,
  'consent-state': POINTS.public,
  'consent-withdrawal': POINTS.public,
};

const named = (routes: readonly Route[]) =>
  routes.map(
    ({ method, path, limit }) => [method.toUpperCase(), path.replace(/\{\w+\}/g, 'acme'), limit] as const,
  );

describe('a client without a credential', () => {
  it.each(named(ALL_ROUTES))('%s %s counts in %s', async (method, path, limit) => {
    expect(await countAnswered(method, path)).toBe(ANONYMOUS[limit]);
  });

  it.each([
    ['GET', '/nowhere'],
    ['GET', '/assets/base.css'],
    ['GET', '/console/queue'],
    ['GET', '/console/signed-out'],
    ['DELETE', '/docs'],
    ['GET', '/v1/consent/grant'],
    ['GET', '/privacy/nothing'],
    ['HEAD', '/docs'],
  ])('%s %s counts in public too', async (method, path) => {
    expect(await countAnswered(method, path)).toBe(POINTS.public);
  });

  it('reads in a browser why it waits', async () => {
    const headers = { ...nextClient(), accept: 'text/html' };
    let reply: Reply | null = null;
    for (let i = 0; i <= POINTS.public; i += 1) reply = await ask(gpd.url, '/docs', { headers });
    expect(reply?.status).toBe(429);
    expect(reply?.text).toContain('Wait a minute');
  });

  it('has a separate count for each limit: pages that are used up hold up no visit and no right', async () => {
    const headers = nextClient();
    for (let i = 0; i < POINTS.public; i += 1) await ask(gpd.url, '/v1/agent.js', { headers });
    expectError(await ask(gpd.url, '/docs', { headers }), 'rate-limited');
    expectError(await ask(gpd.url, '/me', { method: 'POST', headers, body: '{}' }), 'unsupported-media-type');
    expectError(
      await ask(gpd.url, '/_fp/i/v1', { method: 'POST', headers, body: '{}' }),
      'unsupported-media-type',
    );
    expect((await ask(gpd.url, '/docs', { headers: nextClient() })).status).toBe(200);
  });
});

describe('a client with an invalid session', () => {
  const guarded = ALL_ROUTES.filter(({ limit }) => LIMITS[limit].settings.includes('rate_consent'));
  it.each(named(guarded))('%s %s counts in %s', async (method, path, limit) => {
    const headers = { authorization: `Bearer gpd_ps_${'a'.repeat(43)}` };
    const points = limit === 'consent-withdrawal' ? POINTS.withdrawal : POINTS.client;
    expect(await countAnswered(method, path, headers)).toBe(points);
  });
});

describe('a page that is equal for everyone', () => {
  it.each([
    ['/docs', 'text/html'],
    ['/openapi.json', 'application/json'],
    ['/', 'text/html'],
    ['/case', 'text/html'],
  ])('%s is compressed, and not sent again while it is the same', async (path, accept) => {
    const read = (headers: Record<string, string>) =>
      ask(gpd.url, path, { headers: { ...nextClient(), accept, ...headers } });
    const plain = await read({});
    const zippedHeaders = { ...nextClient(), accept, 'accept-encoding': 'gzip' };
    const zipped = await fetch(gpd.url + path, { headers: zippedHeaders });
    expect([plain.status, zipped.status, zipped.headers.get('content-encoding')]).toEqual([200, 200, 'gzip']);
    expect(plain.headers['content-type']).toBe(`${accept}; charset=utf-8`);
    expect(await zipped.text()).toBe(plain.text);
    expect(zipped.headers.get('vary')).toMatch(/\bAccept-Encoding\b/);
    const etag = String(zipped.headers.get('etag'));
    expect(etag).not.toBe(plain.headers['etag']);
    expect((await read({ 'accept-encoding': 'gzip', 'if-none-match': etag })).status).toBe(304);
  });
});
