import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ORIGIN } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { type Api, createBrowser, PURPOSE, startApi } from './support/api.ts';

/** GPD_RATE_CONSENT: a bucket a key, and it is asked first. Who holds the key of the page has buckets by client (ADR 0035). */

const LIMIT = 3;
const GRANT = '/v1/consent/grant';
const CHECK = '/v1/consent/can-process';
const check = { principalId: 'a', purpose: PURPOSE };

const api = started(() => startApi({ settings: { GPD_RATE_CONSENT: `${LIMIT}/60` } }));

function expectLimited(reply: Reply): void {
  expectError(reply, 'rate-limited');
  expect(reply.headers['retry-after']).toMatch(/^[1-9]\d?$/);
  expect(Number(reply.headers['retry-after'])).toBeLessThanOrEqual(60);
}

async function exhaust(credential: string): Promise<void> {
  for (let i = 0; i < LIMIT; i += 1) {
    expect((await api.post(CHECK, check, credential)).status).not.toBe(429);
  }
}

describe('the rate limit of a key', () => {
  it('is one bucket over all routes, and comes before scope, body and ownership', async () => {
    const credential = api.keys['read-only'];
    await exhaust(credential);
    expectLimited(await api.post(CHECK, check, credential));
    expectLimited(await api.post(GRANT, '{"broken', credential));
    expectLimited(await api.post('/v1/sessions', {}, credential));
    expectLimited(await api.get('/v1/ledger/checkpoint', credential));
    expectLimited(await api.get('/v1/consent/purposes', credential));
    expectLimited(await api.get('/v1/decisions/req_none', credential));
  });

  it('counts what is refused, too', async () => {
    for (let i = 0; i < LIMIT; i += 1)
      expectError(await api.post('/v1/sessions', {}, api.keys.operator), 'insufficient-scope');
    expectLimited(await api.post('/v1/sessions', {}, api.keys.operator));
  });

  it('is not shared with other keys', async () => {
    await exhaust(api.keys.foreign);
    expectLimited(await api.post(CHECK, check, api.keys.foreign));
    expect((await api.post(CHECK, check)).status).toBe(200);
  });

  it('a session has a bucket of its own', async () => {
    const session = await api.session('limited');
    await exhaust(session);
    expectLimited(await api.post('/v1/consent/state', { principalId: 'limited' }, session));
    expect((await api.post(CHECK, check)).status).toBe(200);
  });

  it('a credential that nobody has stays 401', async () => {
    for (let i = 0; i <= LIMIT; i += 1) {
      expectError(await api.post(CHECK, check, api.keys.revoked), 'unauthenticated');
    }
  });
});

describe('the limits of visitors, who share the key of the page', () => {
  const WITHDRAW = '/v1/consent/withdraw';
  const SHARED = 8;
  const [CLIENT, NEW, WITHDRAWALS] = [12, 2, 2];
  let shop: Api;
  beforeEach(async () => {
    shop = await startApi({
      settings: {
        GPD_TRUSTED_PROXIES: '127.0.0.1/32',
        GPD_RATE_CONSENT: `${SHARED}/60`,
        GPD_RATE_CONSENT_CLIENT: `${CLIENT}/60`,
        GPD_RATE_CONSENT_NEW: `${NEW}/60`,
        GPD_RATE_CONSENT_WITHDRAW: `${WITHDRAWALS}/60`,
      },
    });
  });
  afterEach(() => shop.stop());

  const from = (client: number) => ({ origin: ORIGIN, 'x-forwarded-for': `203.0.113.${client}` });
  const write = (path: string, client: number, who = createBrowser(), headers = from(client)) =>
    shop.post(path, { ...who, purposes: [PURPOSE] }, shop.keys.publishable, headers);
  const statuses = async (count: number, call: (i: number) => Promise<Reply>): Promise<number[]> => {
    const got: number[] = [];
    for (let i = 0; i < count; i += 1) got.push((await call(i)).status);
    return got;
  };
  const STRANGERS = [60, 61, 62, 63, 64];

  it('open pages that ask for their state deny nobody behind the same address', async () => {
    const anna = createBrowser();
    const ask = () => shop.post('/v1/consent/state', anna, shop.keys.publishable, from(1));
    expect(await statuses(CLIENT, ask)).toEqual(Array(CLIENT).fill(200));
    expectLimited(await ask());
    expect((await shop.get('/v1/consent/banner', shop.keys.publishable, from(1))).status).toBe(200);
    expect((await write(GRANT, 1)).status).toBe(201);
    expect((await write(WITHDRAW, 1)).status).toBe(201);
  });

  it('refusals by one network, of whatever kind, lock nobody else out', async () => {
    const anna = createBrowser();
    expect((await write(GRANT, 1, anna)).status).toBe(201);
    for (const stranger of STRANGERS) {
      const bare = { ...from(stranger), origin: 'https://evil.example' };
      const stolen = { ...createBrowser(), principalId: anna.principalId };
      expect(await statuses(4, () => shop.post(CHECK, check, shop.keys.publishable, from(stranger)))).toEqual(
        Array(4).fill(403),
      );
      expect(await statuses(4, () => write(GRANT, stranger, createBrowser(), bare))).toEqual(
        Array(4).fill(403),
      );
      expect(await statuses(4, () => write(GRANT, stranger, stolen))).toEqual(Array(4).fill(403));
      expect(await statuses(3, () => write(GRANT, stranger, stolen))).toEqual(Array(3).fill(429));
    }
    expect((await write(GRANT, 1, anna)).status).toBe(201);
  });

  it('browsers that are new to the tenant are limited more tightly than those it knows', async () => {
    const [one, two] = [createBrowser(), createBrowser()];
    expect((await write(GRANT, 2, one)).status).toBe(201);
    expect((await write('/v1/consent/deny', 2, two)).status).toBe(201);
    expectLimited(await write(GRANT, 2));
    expectLimited(await write('/v1/consent/deny', 2));
    expect((await write(GRANT, 2, two)).status).toBe(201);
    expect((await write(GRANT, 3)).status).toBe(201);
  });

  it('who withdraws or denies is not locked out by grants of strangers, nor by their own', async () => {
    const [anna, bert] = [createBrowser(), createBrowser()];
    await write(GRANT, 4, anna);
    await write('/v1/consent/deny', 5, bert);
    for (let stranger = 0; stranger < SHARED; stranger += 1) await write(GRANT, stranger + 100);
    expectLimited(await write(GRANT, 99));
    expectLimited(await shop.get('/v1/consent/purposes', shop.keys.publishable, from(99)));
    // Without it the banner has no button to withdraw with.
    expect((await shop.get('/v1/consent/banner', shop.keys.publishable, from(4))).status).toBe(200);
    expectLimited(await write(GRANT, 4, anna));
    expect((await write(WITHDRAW, 4, anna)).status).toBe(201);
    expect((await write('/v1/consent/deny', 5, bert)).status).toBe(201);
    expect(await shop.check(anna.principalId)).toMatchObject({ allowed: false, reason: 'withdrawn' });
    expect(await statuses(CLIENT, () => write(GRANT, 4, anna))).toEqual(Array(CLIENT).fill(429));
    expect((await write(WITHDRAW, 4, anna)).status).toBe(201);
    expectLimited(await write(WITHDRAW, 4, anna));
    expect((await write(WITHDRAW, 6, bert)).status).toBe(201);
  });
});
