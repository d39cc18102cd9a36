import { describe, expect, it } from 'vitest';
import type { ApiKey } from '../../src/auth/credentials.ts';
import { consentRoutes } from '../../src/consent/routes.ts';
import { createConcurrencyLimit, createReadWhole, unlimited, watchLimiter } from '../../src/http/limiter.ts';
import type { Reply } from '../../src/http/reply.ts';
import type { HttpRequest } from '../../src/http/request.ts';
import { createRouteTable, type ServedRoute } from '../../src/http/routes.ts';
import { type IngestServices, refusal } from '../../src/ingest/ingest.ts';
import { readEnvelope, unseal } from '../../src/ingest/open.ts';
import { ingestRoutes } from '../../src/ingest/routes.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import type { DecisionAnswer } from '../../src/schema/consent.ts';
import type { Route } from '../../src/schema/route.ts';
import { ROUTES } from '../../src/schema/routes.ts';
import { ORIGIN } from '../support/constants.ts';

const PLACES = 3;

const HEADERS = { 'content-type': 'application/json', authorization: 'Bearer key', origin: ORIGIN };

interface Pending {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Work that ends when the test says so. */
function createWork<Result>(result: Result) {
  const pending: Pending[] = [];
  const begin = (): Promise<Result> =>
    new Promise((resolve, reject) => {
      pending.push({ resolve: () => resolve(result), reject });
    });
  return { pending, begin };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function httpRequest(body: object, fields: Partial<HttpRequest> = {}): HttpRequest {
  return {
    method: 'POST',
    target: '/',
    headers: HEADERS,
    requestId: 'req_1',
    limitKey: 'client',
    networkKey: 'network',
    client: null,
    ja4: null,
    behindProxy: false,
    https: true,
    readBytes: async () => Buffer.from(JSON.stringify(body)),
    ...fields,
  };
}

const bundle = {
  kid: 'acme',
  epk: Buffer.alloc(65, 4).toString('base64'),
  iv: Buffer.alloc(12).toString('base64'),
  ct: Buffer.alloc(40).toString('base64'),
};

interface Lane {
  readonly lane: (request: HttpRequest) => Promise<Reply>;
  readonly body: object;
  readonly pending: readonly Pending[];
}

const key = { kid: 'acme', scope: 'secret', hash: 'hash' } as ApiKey;
const watched = watchLimiter(unlimited);

/** The table of routes with one of them, which has a few places. */
function laneOf(row: Route, routes: readonly ServedRoute[], knowsOrigin: (origin: string) => boolean) {
  const table = createRouteTable(
    {
      authorization: {
        findApiKey: async () => key,
        findSession: async () => null,
        limits: {
          key: unlimited,
          client: watched,
          withdrawal: watched,
          state: watched,
          newcomer: unlimited,
          anonymous: unlimited,
        },
        knowsOrigin,
      },
      authenticate: () => Promise.reject(new Error('no token is expected')),
      limiters: { privacy: unlimited, public: unlimited },
      onFault: () => {},
    },
    routes
      .filter((route) => route.row === row)
      .map((route) => ({ ...route, bound: createConcurrencyLimit(PLACES) })),
  );
  return async (request: HttpRequest) =>
    (await table.answer(table.find(row.path), { ...request, target: row.path })) as Reply;
}

function ingestLane(): Lane {
  const work = createWork(refusal('stale', 'req_1'));
  const routes = ingestRoutes({
    isPublicHttps: false,
    open: (body) => {
      const bundle = readEnvelope(body);
      return bundle && unseal(bundle, undefined);
    },
    services: {} as IngestServices,
    counted: () => work.begin,
    limiter: async () => 0,
    knowsOrigin: (origin) => origin === ORIGIN,
    tenantOf: () => ({ origins: new Set([ORIGIN]) }),
    sessionOf: () => 'session',
    isHosting: () => null,
    markNetwork: (network) => network,
    onFault: () => {},
  });
  const lane = laneOf(ROUTES.ingest, routes, (origin) => origin === ORIGIN);
  return { lane, body: bundle, pending: work.pending };
}

function consentLane(): Lane {
  const work = createWork<DecisionAnswer>({
    allowed: true,
    reason: 'granted',
    proof: { seq: 1, hash: '' },
    policyVersion: 0,
    expiresAt: null,
    given: 'unknown',
  });
  const routes = consentRoutes({ check: work.begin } as unknown as Parameters<typeof consentRoutes>[0]);
  // From a page of a registered origin a secret key is refused.
  const lane = laneOf(ROUTES.checkConsent, routes, () => false);
  return { lane, body: { principalId: 'u-1', purpose: 'ads' }, pending: work.pending };
}

function expectFull({ status, headers, body }: Reply, allowedOrigin: string | undefined): void {
  expect(status).toBe(503);
  expect(JSON.parse(body as string)).toMatchObject({ error: 'unavailable' });
  expect(headers['retry-after']).toBe('1');
  expect(headers['access-control-allow-origin']).toBe(allowedOrigin);
  expect(headers).not.toHaveProperty('set-cookie');
}

describe.each([
  ['ingest', ingestLane, 400, ORIGIN],
  ['consent', consentLane, 200, undefined],
] as const)('the gate of the lane %s', (_name, createLane, answered, allowedOrigin) => {
  /** All places are taken. */
  async function full() {
    const { lane, body, pending } = createLane();
    const under = Array.from({ length: PLACES }, () => lane(httpRequest(body)));
    await turn();
    expect(pending).toHaveLength(PLACES);
    return { lane, body, pending, under };
  }

  it('refuses what comes past its places with 503, unread, and begins no work', async () => {
    const { lane, body, pending } = await full();
    for (const refused of [body, { not: 'this' }])
      expectFull(await lane(httpRequest(refused)), allowedOrigin);
    const readBytes = () => Promise.reject(new Error('the body was read'));
    expectFull(await lane(httpRequest(body, { readBytes })), allowedOrigin);
    expect(pending).toHaveLength(PLACES);
  });

  it.each([
    [405, { method: 'GET' }],
    [413, { headers: { ...HEADERS, 'content-length': '32769' } }],
    [415, { headers: { ...HEADERS, 'content-type': 'text/plain' } }],
  ])('still says first what is wrong with the head: %i', async (status, fields) => {
    const { lane, body } = await full();
    expect((await lane(httpRequest(body, fields))).status).toBe(status);
  });

  it('has a place again for every answer, and when the work fails', async () => {
    const { lane, body, pending, under } = await full();
    pending[0]?.resolve();
    expect((await under[0])?.status).toBe(answered);
    pending[1]?.reject(new Unavailable('busy', 3));
    expect((await under[1])?.headers['retry-after']).toBe('3');
    const next = [lane(httpRequest(body)), lane(httpRequest(body))];
    await turn();
    expect(pending).toHaveLength(PLACES + 2);
    expectFull(await lane(httpRequest(body)), allowedOrigin);
    pending[PLACES]?.resolve();
    expect((await next[0])?.status).toBe(answered);
  });

  it('gives no place to who sends slowly, nor to a body that is none', async () => {
    const { lane, body, pending } = createLane();
    for (let i = 0; i < 2 * PLACES; i += 1) {
      void lane(httpRequest(body, { readBytes: () => new Promise(() => {}) }));
      expect((await lane(httpRequest({}))).status).toBe(400);
    }
    await turn();
    const next = lane(httpRequest(body));
    await turn();
    expect(pending).toHaveLength(1);
    pending[0]?.resolve();
    expect((await next).status).toBe(answered);
  });
});

it('of one key as many read at a time as there are places; the next one is refused, and finds a place again', async () => {
  const readWhole = createReadWhole(2);
  const full = new Error('full');
  const ends: (() => void)[] = [];
  const work = () => new Promise<void>((resolve) => void ends.push(resolve));
  const read = (key: string): Promise<void> => readWhole(key, work, () => full);
  const running = [read('a'), read('a')];
  await expect(read('a')).rejects.toBe(full);
  running.push(read('b'));
  expect(ends).toHaveLength(3);
  ends[0]?.();
  await running[0];
  running.push(read('a'));
  expect(ends).toHaveLength(4);
  for (const end of ends) end();
  await Promise.all(running);
  await expect(readWhole('a', () => Promise.reject(full), Error)).rejects.toBe(full);
  await Promise.all(['a', 'a'].map((key) => readWhole(key, async () => {}, Error)));
});
