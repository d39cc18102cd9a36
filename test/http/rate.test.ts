import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectCore, expectError, post, REQUEST_ID } from '../support/expect.ts';
import type { Reply } from '../support/http.ts';
import { createBundle } from '../support/seal.ts';
import { type Gpd, startGpd } from '../support/server.ts';

const LIMIT = 5;

let stranger: Gpd;
let proxied: Gpd;
beforeAll(async () => {
  const settings = { GPD_RATE_INGEST: `${LIMIT}/60` };
  [stranger, proxied] = await Promise.all([
    startGpd({ settings }),
    startGpd({ settings: { ...settings, GPD_TRUSTED_PROXIES: '127.0.0.1/32, 10.0.0.0/8' } }),
  ]);
});
afterAll(() => Promise.all([stranger.stop(), proxied.stop()]));

function expectLimited(reply: Reply): void {
  expect(reply.status).toBe(429);
  expect(reply.json()).toEqual({ error: 'rate-limited', reason: 'rate-limited' });
  expect(reply.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  expect(Number(reply.headers['retry-after'])).toBeLessThanOrEqual(60);
  expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
  expect(reply.headers).not.toHaveProperty('set-cookie');
}

/** Statuses of requests sent one after the other, each with its X-Forwarded-For. */
async function statuses(gpd: Gpd, forwarded: readonly string[]): Promise<number[]> {
  const got: number[] = [];
  for (const address of forwarded) {
    got.push((await post(gpd.url, '{}', { 'x-forwarded-for': address })).status);
  }
  return got;
}

const FULL_THEN_LIMITED = [...Array.from({ length: LIMIT }, () => 400), 429];

describe('the bucket ingest', () => {
  it('5/60: the sixth request is 429, whatever a stranger says of X-Forwarded-For', async () => {
    const acme = stranger.targets[0]!;
    for (let i = 1; i <= LIMIT; i += 1) {
      expectCore(await post(stranger.url, createBundle(acme), { 'x-forwarded-for': `203.0.113.${i}` }), 'ok');
    }
    const otherHeaders = { forwarded: 'for=203.0.113.98', 'x-real-ip': '203.0.113.97' };
    for (const headers of [{ 'x-forwarded-for': '203.0.113.99' }, {}, otherHeaders])
      expectLimited(await post(stranger.url, createBundle(acme), headers));
  });

  it('warns once about strangers, without their addresses', async () => {
    const gpd = await startGpd();
    expect(await statuses(gpd, ['203.0.113.1', '203.0.113.2', '203.0.113.3'])).toEqual([400, 400, 400]);
    await gpd.stop();
    expect(gpd.logs().match(/X-Forwarded-For/g)).toHaveLength(1);
    expect(gpd.logs()).not.toContain('203.0.113.');
  });

  it('behind a trusted proxy each client has a bucket', async () => {
    const clients = Array.from({ length: LIMIT + 3 }, (_, i) => `198.51.100.${i}`);
    expect(await statuses(proxied, clients)).toEqual(clients.map(() => 400));
    expect(await statuses(proxied, Array(LIMIT + 1).fill('198.51.100.200'))).toEqual(FULL_THEN_LIMITED);
    expect(await statuses(proxied, ['198.51.100.201'])).toEqual([400]);
    // A chain of trusted proxies is followed back to its client.
    const chain = Array.from({ length: LIMIT + 1 }, (_, i) => `198.51.100.220, 10.0.0.${i}, 10.1.2.3`);
    expect(await statuses(proxied, chain)).toEqual(FULL_THEN_LIMITED);
    expect(await statuses(proxied, ['198.51.100.221, 10.0.0.1'])).toEqual([400]);
  });
});

describe('the limit itself', () => {
  it('is 600 in 60 s by default', async () => {
    const gpd = await startGpd({ settings: { GPD_RATE_INGEST: '' } });
    const replies: Reply[] = [];
    for (let batch = 0; batch < 13; batch += 1) {
      replies.push(...(await Promise.all(Array.from({ length: 50 }, () => post(gpd.url, '{}')))));
    }
    const limited = replies.filter((reply) => reply.status === 429);
    expect(replies.length - limited.length).toBe(600);
    for (const reply of limited.slice(0, 3)) expectLimited(reply);
    await gpd.stop();
  });

  it('is open again after Retry-After', async () => {
    const gpd = await startGpd({ settings: { GPD_RATE_INGEST: '1/1' } });
    expectError(await post(gpd.url, '{}'), 'malformed-sealed-bundle');
    const reply = await post(gpd.url, '{}');
    expectLimited(reply);
    expect(reply.headers['retry-after']).toBe('1');
    await expect.poll(async () => (await post(gpd.url, '{}')).status).toBe(400);
    await gpd.stop();
  });
});
