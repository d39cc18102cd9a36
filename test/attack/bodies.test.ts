import { deflateSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { bearer } from '../consent/app/support/api.ts';
import { apiKey, startRightsProcess } from '../rights/support/rights.ts';
import { KID } from '../support/constants.ts';
import { ask, JSON_TYPE, type Reply } from '../support/http.ts';
import { makePlaintext, seal } from '../support/seal.ts';
import { started } from '../support/started.ts';
import { expectNoneLogged } from './support/faults.ts';

/** Bodies that are bombs or poison, on every route that reads JSON, with a credential that reaches the reader. */

const rights = started(() => startRightsProcess());
const credentials = { none: '', secret: '', operator: '', session: '', subject: '', reviewer: '', dpo: '' };
type Credential = keyof typeof credentials;

interface JsonRoute {
  readonly path: string;
  readonly method?: string;
  readonly as: Credential;
  /** A body that the route takes as far as its shape goes. */
  readonly good: Readonly<Record<string, unknown>>;
}

const who = { principalId: 'u-1' };
const REQUEST_ID = 'req_01KAG0000000000000000000AA';
const CONTEST_ID = 'con_01KAG0000000000000000000AA';
const CASE_KEY = '00000-00000-00000-00000-00000-0';
/** They judge the token first, and look at no other key. */
const BY_TOKEN: ReadonlySet<string> = new Set(['/me', '/_fp/attest/v1/options', '/_fp/attest/v1/verify']);
const ROUTES: readonly JsonRoute[] = [
  { path: '/_fp/i/v1', as: 'none', good: { kid: KID, iv: 'AAAAAAAAAAAAAAAA', ct: 'AAAA' } },
  { path: '/me', as: 'none', good: { token: 'x', action: 'view' } },
  { path: '/_fp/attest/v1/options', as: 'none', good: { token: 'x' } },
  { path: '/_fp/attest/v1/verify', as: 'none', good: { token: 'x', credential: {} } },
  {
    path: '/v1/agents/verify',
    as: 'secret',
    good: { method: 'GET', url: 'https://a.example/', headers: {} },
  },
  { path: '/v1/agents/review', as: 'none', good: { case: REQUEST_ID, statement: 'x' } },
  { path: '/case', as: 'none', good: { caseKey: CASE_KEY } },
  { path: '/case/answer', as: 'none', good: { caseKey: CASE_KEY, answer: 'x' } },
  { path: '/case/complain', as: 'none', good: { caseKey: CASE_KEY, statement: 'x' } },
  { path: '/privacy/contest', as: 'subject', good: { requestId: REQUEST_ID } },
  { path: '/privacy/contest/answer', as: 'subject', good: { contestId: CONTEST_ID, answer: 'x' } },
  {
    path: '/privacy/contest/resolve',
    as: 'reviewer',
    good: { contestId: CONTEST_ID, outcome: 'upheld', reason: 'r'.repeat(30) },
  },
  { path: '/privacy/dsar', as: 'subject', good: {} },
  { path: '/privacy/erase', as: 'dpo', good: { requestId: REQUEST_ID } },
  { path: '/v1/consent/can-process', as: 'secret', good: { ...who, purpose: 'device-identification' } },
  { path: '/v1/consent/can-process/batch', as: 'secret', good: { checks: [] } },
  { path: '/v1/consent/grant', as: 'secret', good: { ...who, purposes: ['no-such-purpose'] } },
  { path: '/v1/consent/deny', as: 'secret', good: { ...who, purposes: ['no-such-purpose'] } },
  { path: '/v1/consent/withdraw', as: 'secret', good: { ...who, purposes: ['no-such-purpose'] } },
  { path: '/v1/consent/state', as: 'secret', good: who },
  { path: '/v1/consent/receipts', as: 'secret', good: who },
  { path: '/v1/consent/state/refresh', as: 'secret', good: { state: 'a.b.c' } },
  { path: '/v1/consent/history', as: 'secret', good: who },
  { path: '/v1/consent/purposes', method: 'PUT', as: 'operator', good: { purposes: [] } },
  { path: '/v1/consent/policies', as: 'operator', good: { text: 'a policy', material: false } },
  { path: '/v1/sessions', as: 'secret', good: who },
  { path: '/v1/mcp', as: 'operator', good: { jsonrpc: '2.0', id: 1, method: 'ping' } },
  { path: '/v1/decisions/{requestId}/outcome', as: 'secret', good: { outcome: 'fraud' } },
  { path: '/v1/principals/link', as: 'session', good: { token: 'x' } },
  {
    path: '/v1/principals/join',
    as: 'session',
    good: { principalId: `b_${'A'.repeat(43)}`, principalSecret: 'A'.repeat(43) },
  },
  { path: '/v1/principals/erase', as: 'session', good: {} },
];

beforeAll(async () => {
  credentials.secret = await apiKey(rights, 'secret');
  credentials.operator = await apiKey(rights, 'operator');
  const opened = await rights.call('/v1/sessions', who, credentials.secret);
  credentials.session = (opened.json() as { token: string }).token;
  const { visitorId } = await rights.visit();
  credentials.subject = await rights.as({ gpd_role: 'subject', gpd_visitor: visitorId });
  credentials.reviewer = await rights.as({ gpd_role: 'reviewer' });
  credentials.dpo = await rights.as({ gpd_role: 'dpo' });
});
expectNoneLogged(/"fault"/, () => rights.gpd.logs());

function send(
  { path, method = 'POST', as }: JsonRoute,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  return ask(rights.gpd.url, path.replace('{requestId}', REQUEST_ID), {
    method,
    headers: { ...JSON_TYPE, ...bearer(credentials[as]), ...headers },
    body,
  });
}

const errorOf = (reply: Reply): unknown => (reply.json() as { error?: unknown }).error;

it('the list has every route of /openapi.json that takes JSON', async () => {
  const { paths } = (await ask(rights.gpd.url, '/openapi.json')).json() as {
    paths: Record<string, Record<string, { requestBody?: unknown }>>;
  };
  const named = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { requestBody }]) =>
      requestBody ? [`${method.toUpperCase()} ${path}`] : [],
    ),
  );
  const listed = ROUTES.map(({ path, method = 'POST' }) => `${method} ${path}`);
  expect([...listed].sort()).toEqual([...named].sort());
});

describe.each(ROUTES.map((route) => [route.path, route] as const))('%s', (_path, route) => {
  const json = JSON.stringify(route.good);

  it('takes no compressed body: a bomb is never unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000, 0x20));
    const packed: readonly (readonly [string, Uint8Array])[] = [
      ['gzip', bomb],
      ['x-gzip', gzipSync(json)],
      ['deflate', deflateSync(json)],
      ['br', Buffer.from(json)],
      ['zstd', Buffer.from(json)],
      ['identity, gzip', gzipSync(json)],
      ['GZIP', gzipSync(json)],
    ];
    for (const [encoding, body] of packed) {
      const reply = await send(route, body, { 'content-encoding': encoding });
      expect({ encoding, status: reply.status, error: errorOf(reply) }).toEqual({
        encoding,
        status: 415,
        error: 'unsupported-media-type',
      });
    }
  });

  it('takes no JSON that is too deep', async () => {
    const bad = route.path === '/_fp/i/v1' ? 'malformed-sealed-bundle' : 'invalid-json';
    const texts = [
      '['.repeat(32_000),
      '{"a":'.repeat(6000),
      `${'['.repeat(16_000)}${']'.repeat(16_000)}`,
      `${'{"a":'.repeat(33)}1${'}'.repeat(33)}`,
    ];
    for (const text of texts) {
      const reply = await send(route, text);
      expect({ status: reply.status, error: errorOf(reply) }).toEqual({ status: 400, error: bad });
    }
  });

  it('takes no key that would pollute a prototype', async () => {
    const inside = json.slice(1, -1);
    const comma = inside === '' ? '' : ',';
    const keys = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '\\u005f_proto__'];
    for (const key of keys) {
      for (const value of ['{"polluted":true}', '{"prototype":{"polluted":true}}', 'null', '[]', '"x"']) {
        const reply = await send(route, `{"${key}":${value}${comma}${inside}}`);
        const header = `${key} ${value}`;
        const status = BY_TOKEN.has(route.path) ? 401 : 400;
        expect({ what: header, status: reply.status }).toEqual({ what: header, status });
        expect(reply.text).not.toContain('polluted');
      }
    }
    const next = await ask(rights.gpd.url, '/healthz');
    expect(next.json()).toEqual({ status: 'ok', version: expect.any(String) });
    expect(next.headers).not.toHaveProperty('polluted');
  });

  it('answers every odd JSON text with a refusal', async () => {
    const texts = ['null', '[]', '""', '-0', '1e999', 'true', '{}}', '{"a":1}{', '\ufeff{}', '{"\\ud800":1}'];
    for (const text of [...texts, '[1,2,3]', ' '.repeat(30_000), `{"a":"${'\\'.repeat(20_000)}"}`]) {
      const { status } = await send(route, text);
      expect({ text: text.slice(0, 20), refused: status >= 400 && status < 500 }).toEqual({
        text: text.slice(0, 20),
        refused: true,
      });
    }
  });
});

describe('behind the seal', () => {
  it.each([
    ['in the plaintext', (text: string) => text.replace('{', '{"__proto__":{"polluted":true},'), 400],
    [
      'in the consent',
      (text: string) => text.replace('"consent":{', '"consent":{"__proto__":{"gpc":true},'),
      200,
    ],
    [
      'in the signals',
      (text: string) => text.replace('"signals":{', '"signals":{"__proto__":{"tells":{"cdp":true}},'),
      200,
    ],
    [
      'in a group',
      (text: string) => text.replace('"page":{', '"page":{"constructor":{"prototype":{"webdriver":true}},'),
      200,
    ],
  ])('a key that would pollute %s changes no verdict', async (_where, change, status) => {
    const text = JSON.stringify(makePlaintext());
    const changed = change(text);
    expect(changed).not.toBe(text);
    const reply = await rights.call('/_fp/i/v1', seal(rights.acme, changed));
    expect(reply.status).toBe(status);
    const next = (await rights.visit()).answer;
    expect(next).toMatchObject({ class: 'human', smartSignals: { bot: false } });
    if (status === 200) expect(reply.json()).toMatchObject({ class: 'human' });
  });

  it.each(['constructor', '__proto__', 'tostring', 'valueof'])(
    'the purpose %s is no purpose',
    async (purpose) => {
      const check = await rights.call('/v1/consent/can-process', { ...who, purpose }, credentials.secret);
      if (purpose === '__proto__') expect(check.status).toBe(400);
      else expect(check.json()).toMatchObject({ allowed: false, reason: 'unknown-purpose' });
      const grant = await rights.call(
        '/v1/consent/grant',
        { ...who, purposes: [purpose] },
        credentials.secret,
      );
      expect(grant.status).toBe(purpose === '__proto__' ? 400 : 422);
    },
  );

  it.each(['constructor', '__proto__', 'toString'])(
    'the principal %s has asked for nothing',
    async (principalId) => {
      const body = { principalId, purpose: 'device-identification' };
      const check = await rights.call('/v1/consent/can-process', body, credentials.secret);
      expect(check.json()).toMatchObject({ allowed: false, reason: 'never-asked' });
    },
  );
});
