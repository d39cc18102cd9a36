import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KID, ORIGIN } from '../support/constants.ts';
import { expectCore, expectError, INGEST, post, REQUEST_ID } from '../support/expect.ts';
import { ask, type Reply } from '../support/http.ts';
import { createBundle } from '../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../support/server.ts';

const OTHER_ORIGIN = 'http://localhost:3000';
const STRANGER = 'https://evil.example';

let gpd: Gpd;
let limited: Gpd;
let acme: SealTarget;
beforeAll(async () => {
  const tenants = [
    { kid: KID, origins: [ORIGIN] },
    { kid: 'other', origins: [OTHER_ORIGIN] },
  ];
  [gpd, limited] = await Promise.all([
    startGpd({ tenants }),
    startGpd({ settings: { GPD_RATE_INGEST: '1/600' } }),
  ]);
  acme = gpd.targets[0]!;
  await post(limited.url, '{}');
});
afterAll(() => Promise.all([gpd.stop(), limited.stop()]));

function expectCors(reply: Reply, origin: string): void {
  expect(reply.headers['access-control-allow-origin']).toBe(origin);
  expect(reply.headers['access-control-allow-credentials']).toBe('true');
  expect(reply.headers['vary']).toMatch(/\bOrigin\b/i);
}

function expectNoCors(reply: Reply): void {
  expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
  expect(reply.headers['vary']).toMatch(/\bOrigin\b/i);
}

describe('CORS beside large cookies', () => {
  const cookie = Array.from({ length: 5 }, (_, i) => `c${i}=${'x'.repeat(3900)}`).join('; ');

  it.each([
    [INGEST, ORIGIN],
    ['/v1/consent/grant', ORIGIN],
    [INGEST, STRANGER],
  ])('%s: why it is refused, to %s', async (path, origin) => {
    const reply = await ask(gpd.url, path, { method: 'POST', headers: { origin, cookie }, body: '{}' });
    expectError(reply, 'headers-too-large');
    if (origin === ORIGIN) expectCors(reply, origin);
    else expectNoCors(reply);
  });
});

describe('CORS on the ingest route', () => {
  it.each([
    [ORIGIN, 0],
    [OTHER_ORIGIN, 1],
  ])('%s reads with credentials what its own tenant answers', async (origin, i) => {
    const reply = await post(gpd.url, createBundle(gpd.targets[i]!), { origin });
    expectCore(reply, 'ok');
    expectCors(reply, origin);
  });

  it('reads no verdict and no refusal of another tenant, in whatever way its bundle ends', async () => {
    const stolen = createBundle(acme);
    const spoilt = { ...stolen, ct: createBundle(acme).ct };
    const headers = { origin: OTHER_ORIGIN };
    const ends = [
      ['ok', await post(gpd.url, stolen, headers)],
      ['replay', await post(gpd.url, stolen, headers)],
      ['decrypt-failed', await post(gpd.url, spoilt, headers)],
      ['stale', await post(gpd.url, createBundle(acme, { clientTs: 0 }), headers)],
      ['consent-missing', await post(gpd.url, createBundle(acme), { ...headers, 'sec-gpc': '1' })],
    ] as const;
    for (const [reason, reply] of ends) {
      expectCore(reply, reason);
      expectNoCors(reply);
    }
    // A kid that nobody has is a mistake in the page itself.
    const reply = await post(gpd.url, { ...createBundle(acme), kid: 'nobody' }, headers);
    expectCore(reply, 'decrypt-failed');
    expectCors(reply, OTHER_ORIGIN);
  });

  it('lets a page read by which time a bundle was judged', async () => {
    const headers = { origin: ORIGIN };
    const before = Math.floor(Date.now() / 1000) * 1000;
    const staleReply = await post(gpd.url, createBundle(acme, { clientTs: 0 }), headers);
    expectCore(staleReply, 'stale');
    const key = await ask(gpd.url, `/_fp/pubkey?kid=${KID}`, { headers });
    for (const reply of [staleReply, key]) {
      expect(reply.headers['access-control-expose-headers']).toMatch(/\bDate\b/);
      const date = Date.parse(String(reply.headers['date']));
      expect(date).toSatisfy((at: number) => at >= before && at <= Date.now());
    }
    expect(staleReply.headers['access-control-expose-headers']).toContain('Retry-After');
  });

  it('lets a page read the errors too', async () => {
    const headers = { origin: ORIGIN };
    const errors: readonly (readonly [number, Reply])[] = [
      [400, await post(gpd.url, '{}', headers)],
      [400, await post(gpd.url, createBundle(acme, { clientTs: 0 }), headers)],
      [451, await post(gpd.url, createBundle(acme), { ...headers, 'sec-gpc': '1' })],
      [413, await post(gpd.url, 'x'.repeat(32_769), headers)],
      [415, await post(gpd.url, '{}', { ...headers, 'content-type': 'text/plain' })],
      [405, await ask(gpd.url, INGEST, { headers })],
      [429, await post(limited.url, '{}', headers)],
    ];
    for (const [status, reply] of errors) {
      expect(reply.status).toBe(status);
      expectCors(reply, ORIGIN);
    }
  });

  it.each([
    STRANGER,
    'null',
    'http://shop.example',
    `${ORIGIN}.evil.example`,
    'https://shop.example:444',
    `${ORIGIN}/`,
  ])('%s is processed without CORS headers and without a token', async (origin) => {
    const reply = await post(gpd.url, createBundle(acme), { origin });
    expect(expectCore(reply, 'ok')).not.toHaveProperty('transparencyToken');
    expectNoCors(reply);
    const refused = await post(gpd.url, '{}', { origin });
    expectError(refused, 'malformed-sealed-bundle');
    expectNoCors(refused);
    expectNoCors(await post(gpd.url, createBundle(acme)));
  });

  const preflight = (origin: string): Promise<Reply> => {
    const headers = {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type',
    };
    return ask(gpd.url, INGEST, { method: 'OPTIONS', headers });
  };

  it('answers the preflight of a registered origin, and grants a stranger nothing', async () => {
    const reply = await preflight(ORIGIN);
    expect(reply.status).toBe(204);
    expect(reply.text).toBe('');
    expectCors(reply, ORIGIN);
    expect(reply.headers['access-control-allow-methods']).toMatch(/\bPOST\b/);
    expect(reply.headers['access-control-allow-headers']).toMatch(/\bContent-Type\b/i);
    expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
    expect(reply.headers).not.toHaveProperty('set-cookie');
    const refused = await preflight(STRANGER);
    expect(refused.status).toBe(204);
    expectNoCors(refused);
  });
});
