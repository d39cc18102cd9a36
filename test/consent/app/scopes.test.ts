import { beforeAll, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../src/lib/errors.ts';
import { ORIGIN } from '../../support/constants.ts';
import { dumpDatabase } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import { ask, JSON_TYPE, type Reply } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { bearer, createBrowser, expireSession, PURPOSE, startApi } from './support/api.ts';

/** Every credential on every route, and which refusal comes first: the table is the specification (contract section 7). */

const WHO = [
  'secret',
  'operator',
  'read-only',
  'publishable',
  'publishable, no origin',
  'session',
  'foreign secret',
  'revoked',
  'expired session',
  'unknown key',
  'unknown session',
  'basic',
  'none',
] as const;
type Who = (typeof WHO)[number];

const NOBODY: readonly Who[] = [
  'revoked',
  'expired session',
  'unknown key',
  'unknown session',
  'basic',
  'none',
];

interface Route {
  readonly call: string;
  readonly status: number;
  /** Everybody else who is somebody is 403. */
  readonly allowed: readonly Who[];
  readonly body?: (who: Who) => object;
  /** A publishable key may, but not without an origin. */
  readonly needsOrigin?: true;
}

const ERASE = 'POST /v1/principals/erase';
const browser = createBrowser();
const PERSON = 'session-person';
const SECRET: readonly Who[] = ['secret', 'foreign secret'];
const READERS: readonly Who[] = [...SECRET, 'read-only', 'operator'];
const ANY_KEY: readonly Who[] = [...READERS, 'publishable', 'publishable, no origin'];
const WRITERS: readonly Who[] = [...SECRET, 'operator', 'session', 'publishable'];

const person = () => ({ principalId: PERSON });
const writeBody = (who: Who) => ({
  ...(who.startsWith('publishable') ? browser : { principalId: PERSON }),
  purposes: [PURPOSE],
});
const purpose = { id: 'table', title: 'Table' };

const ROUTES: readonly Route[] = [
  {
    call: 'POST /v1/consent/can-process',
    status: 200,
    allowed: READERS,
    body: () => ({ principalId: PERSON, purpose: PURPOSE }),
  },
  {
    call: 'POST /v1/consent/can-process/batch',
    status: 200,
    allowed: READERS,
    body: () => ({ checks: [{ id: '1', principalId: PERSON, purpose: PURPOSE }] }),
  },
  { call: 'POST /v1/consent/grant', status: 201, allowed: WRITERS, body: writeBody, needsOrigin: true },
  { call: 'POST /v1/consent/deny', status: 201, allowed: WRITERS, body: writeBody, needsOrigin: true },
  { call: 'POST /v1/consent/withdraw', status: 201, allowed: WRITERS, body: writeBody, needsOrigin: true },
  {
    call: 'POST /v1/consent/state',
    status: 200,
    allowed: [...READERS, 'session', 'publishable'],
    body: (who) => (who.startsWith('publishable') ? browser : { principalId: PERSON }),
    needsOrigin: true,
  },
  { call: 'POST /v1/consent/history', status: 200, allowed: [...READERS, 'session'], body: person },
  { call: 'GET /v1/consent/banner', status: 200, allowed: ANY_KEY },
  { call: 'GET /v1/consent/purposes', status: 200, allowed: ANY_KEY },
  {
    call: 'PUT /v1/consent/purposes',
    status: 200,
    allowed: ['operator'],
    body: () => ({ purposes: [purpose] }),
  },
  { call: 'GET /v1/consent/policies', status: 200, allowed: ANY_KEY },
  {
    call: 'POST /v1/consent/policies',
    status: 201,
    allowed: ['operator'],
    body: () => ({ text: 'We keep little.', material: false }),
  },
  { call: 'GET /v1/consent/proofs/0', status: 200, allowed: READERS },
  { call: 'GET /v1/ledger/checkpoint', status: 200, allowed: READERS },
  { call: 'GET /v1/ledger/vkey', status: 200, allowed: READERS },
  { call: 'GET /v1/ledger/tile/0/000.p/1', status: 200, allowed: READERS },
  { call: 'GET /v1/ledger/tile/entries/000.p/2', status: 200, allowed: READERS },
  { call: 'GET /v1/ledger/export', status: 200, allowed: READERS },
  { call: 'GET /v1/consent/receipts/2', status: 200, allowed: [...SECRET, 'session'] },
  { call: 'POST /v1/sessions', status: 201, allowed: SECRET, body: person },
  { call: ERASE, status: 200, allowed: ['session'], body: () => ({}) },
];

function expected({ status, allowed, needsOrigin }: Route, who: Who): number | ErrorCode {
  if (NOBODY.includes(who)) return 'unauthenticated';
  if (who === 'publishable, no origin' && needsOrigin) return 'origin-not-allowed';
  return allowed.includes(who) ? status : 'insufficient-scope';
}

const api = started(() => startApi());
const credentials = new Map<Who, string>();
beforeAll(async () => {
  const { keys } = api;
  // Seq 2 of both logs.
  for (const key of [keys.secret, keys.foreign]) {
    await api.post('/v1/consent/grant', { principalId: PERSON, purposes: [PURPOSE] }, key);
  }
  const expired = await api.session(PERSON);
  await expireSession(api.gpd.dataDir, expired);
  const all: Readonly<Record<Who, string>> = {
    secret: keys.secret,
    operator: keys.operator,
    'read-only': keys['read-only'],
    publishable: keys.publishable,
    'publishable, no origin': keys.publishable,
    session: await api.session(PERSON),
    'foreign secret': keys.foreign,
    revoked: keys.revoked,
    'expired session': expired,
    'unknown key': `${keys.secret.slice(0, -4)}AAAA`,
    'unknown session': `gpd_ps_${'A'.repeat(43)}`,
    basic: '',
    none: '',
  };
  for (const who of WHO) credentials.set(who, all[who]);
});

async function call(route: Route, who: Who, extraHeaders: Record<string, string> = {}): Promise<Reply> {
  const [method = '', path = ''] = route.call.split(' ');
  // An erasure ends the sessions of the person.
  const leaving = route.call === ERASE && who === 'session';
  const credential = leaving ? await api.session('leaving') : (credentials.get(who) ?? '');
  const headers = {
    ...(who === 'basic' ? { authorization: 'Basic dTpw' } : bearer(credential)),
    ...(who === 'publishable' ? { origin: ORIGIN } : {}),
    ...extraHeaders,
  };
  if (!route.body) return ask(api.gpd.url, path, { method, headers });
  const body = JSON.stringify(route.body(who));
  return ask(api.gpd.url, path, { method, headers: { ...JSON_TYPE, ...headers }, body });
}

describe.each(ROUTES.map((route) => [route.call, route] as const))('%s', (_name, route) => {
  it.each(WHO.map((who) => [who, expected(route, who)] as const))('%s: %s', async (who, outcome) => {
    const reply = await call(route, who);
    if (typeof outcome === 'number') {
      expect({ status: reply.status, text: reply.text }).toMatchObject({ status: outcome });
    } else {
      expectError(reply, outcome);
      expect(reply.headers['www-authenticate']).toBe(outcome === 'unauthenticated' ? 'Bearer' : undefined);
    }
    const isFile = route.call.includes('/tile/');
    if (!isFile) expect(reply.headers['cache-control']).toBe('no-store');
    expect(reply.headers['x-content-type-options']).toBe('nosniff');
    expect(reply.headers['x-request-id']).toMatch(/^req_[0-9A-Z]{26}$/);
    expect(reply.headers['set-cookie']).toBeUndefined();
  });
});

describe.each(ROUTES.map((route) => [route.call, route] as const))('%s in a page', (_name, route) => {
  const inPage = { 'sec-fetch-site': 'same-origin' };

  it.each(READERS)('refuses the %s key, whatever it may do', async (who) => {
    expectError(await call(route, who, { ...inPage, origin: ORIGIN }), 'secret-key-in-page');
    expectError(await call(route, who, inPage), 'secret-key-in-page');
    // A page without TLS sends its origin alone.
    expectError(await call(route, who, { origin: ORIGIN }), 'secret-key-in-page');
  });

  it.each(['publishable', 'session', 'revoked'] as const)('%s: as without a browser', async (who) => {
    const outcome = expected(route, who);
    const reply = await call(route, who, inPage);
    if (typeof outcome === 'string') expectError(reply, outcome);
    else expect(reply.status).toBe(outcome);
  });
});

it('nothing is written for those who are refused', async () => {
  // A key stores the day of its last use, even when the request was refused.
  const dump = () => dumpDatabase(api.gpd.dataDir, ['api_keys']);
  const before = await dump();
  for (const route of ROUTES.filter(({ body }) => body)) {
    for (const who of WHO) {
      if (typeof expected(route, who) === 'string') await call(route, who);
    }
  }
  expect(await dump()).toEqual(before);
});

describe('a key of another tenant', () => {
  const person = { principalId: 'only-here', purpose: PURPOSE };
  beforeAll(() => api.write('grant', { principalId: 'only-here' }));

  it('knows nobody of this tenant', async () => {
    const { foreign } = api.keys;
    const check = await api.post('/v1/consent/can-process', person, foreign);
    expect(check.json()).toMatchObject({ allowed: false, reason: 'never-asked' });
    const history = await api.post('/v1/consent/history', { principalId: 'only-here' }, foreign);
    expect(history.json()).toMatchObject({ events: [], nextCursor: null });
    const state = await api.post('/v1/consent/state', { principalId: 'only-here' }, foreign);
    expect(state.json()).toMatchObject({ purposes: [{ choice: null, reason: 'never-asked' }] });
  });

  it('writes to its own log and leaves this one as it was', async () => {
    await api.write('grant', { principalId: 'here-too' });
    const ownExport = (await api.get('/v1/ledger/export')).text;
    const reply = await api.post(
      '/v1/consent/withdraw',
      { principalId: 'here-too', purposes: [PURPOSE] },
      api.keys.foreign,
    );
    expect(reply.status).toBe(201);
    expect((await api.get('/v1/ledger/export')).text).toBe(ownExport);
    expect(await api.check('here-too')).toMatchObject({ allowed: true });
  });

  it('reads another log, under another key', async () => {
    for (const path of ['/v1/ledger/vkey', '/v1/ledger/checkpoint', '/v1/consent/proofs/0']) {
      expect((await api.get(path, api.keys.foreign)).text).not.toBe((await api.get(path)).text);
    }
    const { seq } = await api.write('grant', { principalId: 'further' });
    expectError(await api.get(`/v1/consent/proofs/${seq}`, api.keys.foreign), 'not-found');
  });

  it('opens sessions of its own people only', async () => {
    const opened = await api.post('/v1/sessions', { principalId: 'only-here' }, api.keys.foreign);
    const { token } = opened.json() as { token: string };
    const history = await api.post('/v1/consent/history', { principalId: 'only-here' }, token);
    expect(JSON.stringify(history.json())).not.toContain('consent.granted');
  });
});

describe('rate 429, 401, scope 403, body 400 and 422, 404, ownership 403, state 409: contract section 1', () => {
  const GRANT = '/v1/consent/grant';
  const CHECK = '/v1/consent/can-process';
  const BROKEN = '{"principalId":';
  const SOMEBODY_ELSE = { principalId: 'somebody-else', purposes: [PURPOSE] };
  const UNKNOWN = { principalId: 'a', purposes: ['nope'] };
  const LARGE = 'x'.repeat(32_769);
  const FOREIGN_PAGE = { origin: 'https://elsewhere.example' };
  const BAD_KEY = { 'idempotency-key': 'a b' };

  it.each<[comes: ErrorCode, before: string, who: Who, path: string, body: unknown, headers?: object]>([
    ['unauthenticated', 'a broken body', 'revoked', CHECK, BROKEN],
    ['unauthenticated', 'an unknown purpose and a missing origin', 'revoked', GRANT, UNKNOWN],
    ['insufficient-scope', 'a broken body', 'read-only', GRANT, BROKEN],
    ['insufficient-scope', 'a broken body', 'publishable', CHECK, BROKEN],
    ['insufficient-scope', 'a broken body', 'operator', '/v1/sessions', BROKEN],
    ['insufficient-scope', 'another type', 'publishable', CHECK, 'x', { 'content-type': 'text/plain' }],
    ['insufficient-scope', 'a large body', 'read-only', GRANT, LARGE],
    ['insufficient-scope', 'an unknown purpose', 'read-only', GRANT, UNKNOWN],
    ['origin-not-allowed', 'a broken body', 'publishable', GRANT, BROKEN, FOREIGN_PAGE],
    ['invalid-request', 'an unknown purpose', 'secret', GRANT, { ...UNKNOWN, principalId: '' }],
    ['invalid-json', 'ownership', 'session', GRANT, BROKEN],
    ['invalid-request', 'ownership', 'session', GRANT, { ...SOMEBODY_ELSE, more: 1 }],
    ['unknown-purpose', 'ownership', 'session', GRANT, { ...SOMEBODY_ELSE, purposes: ['nope'] }],
    [
      'invalid-request',
      'ownership (no such policy)',
      'session',
      GRANT,
      { ...SOMEBODY_ELSE, policyVersion: 77 },
    ],
    ['invalid-request', 'ownership (a bad key)', 'session', GRANT, SOMEBODY_ELSE, BAD_KEY],
  ])('%s comes before %s for %s', async (comes, _before, who, path, body, headers = {}) => {
    expectError(await api.post(path, body, credentials.get(who), { ...headers }), comes);
  });

  it('401 and 403 come before what is not there, in the log and among proofs', async () => {
    for (const path of ['/v1/ledger/nothing', '/v1/ledger/tile/9/999', '/v1/consent/proofs/999999']) {
      expectError(await ask(api.gpd.url, path), 'unauthenticated');
    }
    expectError(await api.get('/v1/ledger/nothing', api.keys.publishable), 'insufficient-scope');
    const session = credentials.get('session');
    expectError(await api.get('/v1/consent/proofs/999999', session), 'insufficient-scope');
  });

  it('403 of ownership comes before 409, for a session and for a browser', async () => {
    const ownChoice = { principalId: PERSON, purposes: [PURPOSE] };
    const page = createBrowser();
    for (const [credential, choice] of [
      [credentials.get('session'), ownChoice],
      [api.keys.publishable, { ...page, purposes: [PURPOSE] }],
    ] as const) {
      const send = (body: object) =>
        api.post(GRANT, body, credential, { 'idempotency-key': 'mine', origin: ORIGIN });
      expect((await send(choice)).status).toBe(201);
      const stolen = { ...choice, principalId: createBrowser().principalId };
      expectError(await send(stolen), 'not-your-principal');
      expectError(await send({ ...choice, gpc: true }), 'idempotency-conflict');
    }
  });
});
