import type { ServerResponse } from 'node:http';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createServerClient, type Server } from '../../src/banner/server.ts';
import { MINUTE } from '../../src/lib/clock.ts';
import { type Received, receive } from '../support/serve.ts';
import { started } from '../support/started.ts';
import { createConfig, createRecord } from './support.ts';

/** The calls as they go out, and every answer that is not the one hoped for. */

let server: Server;
let requests: Received[] = [];
let respond: (response: ServerResponse) => void;

const http = started(() =>
  receive((received, response) => {
    requests.push(received);
    respond(response);
  }),
);
beforeAll(() => {
  server = createServerClient(http.url, 'gpd_pk_key');
});
beforeEach(() => {
  requests = [];
});

function answer(status: number, body: unknown, headers: Record<string, string> = {}): void {
  respond = (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

const WRITE = { action: 'deny', purposes: ['ads'], policyVersion: 3, gpc: false, key: 'once' } as const;

describe('the time', () => {
  const answerAt = (ms: number): void =>
    answer(200, createConfig(), { date: new Date(Date.now() + ms).toUTCString() });

  it('is the last answer’s, to a write if there was one; a few seconds are its way, and no answer says nothing', async () => {
    expect(server.aheadMs()).toBe(0);
    answerAt(-86_400_000);
    await server.config('en');
    expect(Math.abs(server.aheadMs() - 86_400_000)).toBeLessThan(MINUTE);
    respond = (response) => void response.destroy();
    await server.config('en');
    answerAt(7_200_000);
    await server.link('session', 'token');
    expect(server.aheadMs()).toBeGreaterThan(80_000_000);
    answer(422, { error: 'unknown-purpose' }, { date: new Date(Date.now() + 7_200_000).toUTCString() });
    await server.write(createRecord(), WRITE);
    expect(Math.abs(server.aheadMs() + 7_200_000)).toBeLessThan(MINUTE);
    // A service worker may answer what is read from its store.
    answerAt(-86_400_000);
    await server.config('en');
    expect(Math.abs(server.aheadMs() + 7_200_000)).toBeLessThan(MINUTE);
    answer(201, { entries: [] }, { date: new Date(Date.now() + 30_000).toUTCString() });
    await server.write(createRecord(), WRITE);
    expect(server.aheadMs()).toBe(0);
  });
});

describe('the configuration', () => {
  it('is asked for by the publishable key and in one language', async () => {
    answer(200, createConfig());
    expect(await server.config('de')).toEqual(createConfig());
    expect(requests[0]).toMatchObject({
      path: '/v1/consent/banner?lang=de',
      headers: { authorization: 'Bearer gpd_pk_key' },
    });
  });

  it.each([
    ['another shape', 200, { kid: 'shop' }, 'unreachable'],
    ['no JSON', 200, '<html>', 'unreachable'],
    ['nothing', 204, '', 'unreachable'],
    ['a revoked key', 401, { error: 'unauthenticated' }, 'unauthenticated'],
    ['a busy server', 503, { error: 'unavailable' }, 'unavailable'],
    ['a proxy that speaks for itself', 502, 'Bad gateway', 'unreachable'],
  ])('%s is a failure', async (_what, status, body, problem) => {
    respond = (response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(status === 204 ? undefined : typeof body === 'string' ? body : JSON.stringify(body));
    };
    expect(await server.config('en')).toEqual({ problem, transient: true });
  });

  it('that lies elsewhere is not fetched from there', async () => {
    answer(302, '', { location: '/v1/consent/banner?lang=xx' });
    expect(await server.config('en')).toMatchObject({ problem: 'unreachable' });
    expect(requests).toHaveLength(1);
  });
});

describe('a write', () => {
  it('carries the principal’s secret and a key that lets it count once', async () => {
    const entries = [{ purpose: 'ads', seq: 4, hash: 'f'.repeat(64) }];
    answer(201, { entries, seq: 4, hash: 'f'.repeat(64), state: 'a.b.c' });
    const record = createRecord();
    expect(await server.write(record, WRITE)).toMatchObject({ entries, state: 'a.b.c' });
    expect(requests[0]).toMatchObject({ path: '/v1/consent/deny', headers: { 'idempotency-key': 'once' } });
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
      principalId: record.principalId,
      principalSecret: record.secret,
      purposes: ['ads'],
      policyVersion: 3,
      gpc: false,
    });
  });

  it.each([
    [400, 'invalid-request', false],
    [409, 'idempotency-conflict', false],
    [422, 'unknown-purpose', false],
    [401, 'unauthenticated', true],
    [403, 'origin-not-allowed', true],
    [429, 'rate-limited', true],
    [500, 'internal', true],
  ])('%d %s: may the same succeed later? %j', async (status, error, transient) => {
    answer(status, { error });
    expect(await server.write(createRecord(), WRITE)).toEqual({ problem: error, transient });
  });
});

describe('a link', () => {
  const linked = { principalId: 'u-1', requestId: 'req_1', linkedAt: '2026-11-20T12:00:00.000Z' };

  it('goes out under the session, with the token', async () => {
    answer(201, linked);
    expect(await server.link('gpd_ps_session', 'token')).toEqual({ linked: true, ...linked });
    expect(requests[0]).toMatchObject({
      path: '/v1/principals/link',
      headers: { authorization: 'Bearer gpd_ps_session' },
      body: '{"token":"token"}',
    });
  });

  it.each([
    [401, { error: 'unauthenticated' }, 'unauthenticated'],
    [409, { error: 'claimed-by-another' }, 'claimed-by-another'],
    [201, {}, 'unreachable'],
  ])('%d is told as it is', async (status, body, error) => {
    answer(status, body);
    expect(await server.link('s', 't')).toEqual({ linked: false, status, error });
  });
});
