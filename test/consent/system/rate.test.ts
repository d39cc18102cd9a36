import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectError } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { type Api, PURPOSE, startApi } from './support/api.ts';

/** GPD_RATE_CONSENT: a bucket a key, and it is asked first. */

const LIMIT = 3;
const GRANT = '/v1/consent/grant';
const CHECK = '/v1/consent/can-process';
const check = { principalId: 'a', purpose: PURPOSE };

let api: Api;
beforeAll(async () => {
  api = await startApi({ settings: { GPD_RATE_CONSENT: `${LIMIT}/60` } });
});
afterAll(() => api.stop());

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
    await exhaust(api.keys.publishable);
    expectLimited(await api.post(CHECK, check, api.keys.publishable));
  });

  it('is not shared with other keys', async () => {
    await exhaust(api.keys.foreign);
    expectLimited(await api.post(CHECK, check, api.keys.foreign));
    expect((await api.post(CHECK, check, api.keys.operator)).status).toBe(200);
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
