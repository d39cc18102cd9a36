import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../src/lib/errors.ts';
import { ORIGIN } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { type Api, bearer, createBrowser, PURPOSE, startApi } from './support/api.ts';

/** Rate 429 → 401 → scope 403 → body 400 and 422 → 404 → ownership 403 → state 409 (contract section 1). */

let api: Api;
let session: string;
beforeAll(async () => {
  api = await startApi();
  session = await api.session('own');
});
afterAll(() => api.stop());

const GRANT = '/v1/consent/grant';
const CHECK = '/v1/consent/can-process';
const BROKEN = '{"principalId":';
const SOMEBODY_ELSE = { principalId: 'somebody-else', purposes: [PURPOSE] };

describe('401 comes before', () => {
  it.each([
    ['a body that is broken', CHECK, BROKEN],
    ['a body that is broken', GRANT, BROKEN],
    ['a purpose that nobody knows', GRANT, { principalId: 'a', purposes: ['nope'] }],
    ['a missing origin', GRANT, SOMEBODY_ELSE],
  ])('%s on %s', async (_what, path, body) => {
    expectError(await api.post(path, body, api.keys.revoked), 'unauthenticated');
  });

  it('what is not there, in the log and among proofs', async () => {
    for (const path of ['/v1/ledger/nothing', '/v1/ledger/tile/9/999', '/v1/consent/proofs/999999']) {
      expectError(await ask(api.gpd.url, path), 'unauthenticated');
    }
  });
});

describe('403 of the scope comes before', () => {
  it('a broken body', async () => {
    expectError(await api.post(GRANT, BROKEN, api.keys['read-only']), 'insufficient-scope');
    expectError(await api.post(CHECK, BROKEN, api.keys.publishable), 'insufficient-scope');
    expectError(await api.post('/v1/sessions', BROKEN, api.keys.operator), 'insufficient-scope');
  });

  it('another media type and a body that is too large', async () => {
    const headers = { ...bearer(api.keys.publishable), 'content-type': 'text/plain' };
    const body = 'x'.repeat(40);
    expectError(await ask(api.gpd.url, CHECK, { method: 'POST', headers, body }), 'insufficient-scope');
    const large = await api.post(GRANT, 'x'.repeat(32_769), api.keys['read-only']);
    expectError(large, 'insufficient-scope');
  });

  it('an unknown purpose', async () => {
    const body = { principalId: 'a', purposes: ['nope'] };
    expectError(await api.post(GRANT, body, api.keys['read-only']), 'insufficient-scope');
  });

  it('what is not there', async () => {
    expectError(await api.get('/v1/ledger/nothing', api.keys.publishable), 'insufficient-scope');
    expectError(await api.get('/v1/consent/proofs/999999', session), 'insufficient-scope');
  });

  it('an unregistered origin comes before a broken body', async () => {
    const headers = { origin: 'https://elsewhere.example' };
    expectError(await api.post(GRANT, BROKEN, api.keys.publishable, headers), 'origin-not-allowed');
  });
});

describe('400 comes before 422', () => {
  it('a body with one of each', async () => {
    const body = { principalId: '', purposes: ['nope'] };
    expectError(await api.post(GRANT, body), 'invalid-request');
  });
});

describe('400 and 422 come before 403 of ownership', () => {
  it.each<[string, ErrorCode, unknown, Record<string, string>]>([
    ['a broken body', 'invalid-json', BROKEN, {}],
    ['a field too many', 'invalid-request', { ...SOMEBODY_ELSE, more: 1 }, {}],
    ['an unknown purpose', 'unknown-purpose', { ...SOMEBODY_ELSE, purposes: ['nope'] }, {}],
    ['a policy that was never published', 'invalid-request', { ...SOMEBODY_ELSE, policyVersion: 77 }, {}],
    ['a bad Idempotency-Key', 'invalid-request', SOMEBODY_ELSE, { 'idempotency-key': 'a b' }],
  ])('%s: %s', async (_what, code, body, headers) => {
    expectError(await api.post(GRANT, body, session, headers), code);
  });
});

describe('403 of ownership comes before 409', () => {
  it('a session with an Idempotency-Key that it used for another body', async () => {
    const headers = { 'idempotency-key': 'mine' };
    const choice = { principalId: 'own', purposes: [PURPOSE] };
    expect((await api.post(GRANT, choice, session, headers)).status).toBe(201);
    expectError(await api.post(GRANT, SOMEBODY_ELSE, session, headers), 'not-your-principal');
    expectError(await api.post(GRANT, { ...choice, gpc: true }, session, headers), 'idempotency-conflict');
  });

  it('a browser likewise', async () => {
    const headers = { 'idempotency-key': 'browser', origin: ORIGIN };
    const browser = createBrowser();
    const choice = { ...browser, purposes: [PURPOSE] };
    expect((await api.post(GRANT, choice, api.keys.publishable, headers)).status).toBe(201);
    const stolen = { ...choice, principalId: createBrowser().principalId };
    expectError(await api.post(GRANT, stolen, api.keys.publishable, headers), 'not-your-principal');
  });
});
