import { beforeAll, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../src/lib/errors.ts';
import { KID, OTHER, REASON } from '../support/constants.ts';
import { expectError } from '../support/expect.ts';
import { ask, postJson } from '../support/http.ts';
import { createKey, encodePart, signJws } from '../support/jws.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { type Claims, startRights, type Visit } from './support/rights.ts';

/** Every role and every hostile token against every route. */

const ROUTES = ['/privacy/contest', '/privacy/contest/resolve', '/privacy/dsar', '/privacy/erase'];

const rights = started(() => startRights());
let mine: Visit;
let theirs: Visit;
let foreign: Visit;
/** Two whose erasures are allowed. */
let leaving: Visit;
let departed: Visit;
let contestId: string;
let foreignContestId: string;
beforeAll(async () => {
  mine = await rights.visit();
  theirs = await rights.visit();
  foreign = await rights.visit({ target: rights.other, origin: 'https://other.example' });
  leaving = await rights.visit();
  departed = await rights.visit();
  const file = async (visit: Visit, claims: Claims): Promise<string> => {
    const token = await rights.as({ gpd_role: 'subject', gpd_visitor: visit.visitorId, ...claims });
    const reply = await rights.call('/privacy/contest', { requestId: visit.requestId }, token);
    expect(reply.status).toBe(202);
    return (reply.json() as { contestId: string }).contestId;
  };
  contestId = await file(theirs, { sub: 'theirs' });
  foreignContestId = await file(foreign, { sub: 'foreign', gpd_tenant: OTHER });
});

const who: Readonly<Record<string, () => Claims>> = {
  subject: () => ({ gpd_role: 'subject', sub: 'anna', gpd_visitor: mine.visitorId }),
  'subject who leaves': () => ({ gpd_role: 'subject', sub: 'leo', gpd_visitor: leaving.visitorId }),
  'subject without a visitor or a link': () => ({ gpd_role: 'subject', sub: 'nobody' }),
  'subject of no tenant': () => ({ gpd_role: 'subject', gpd_visitor: mine.visitorId, gpd_tenant: undefined }),
  'subject of another tenant': () => ({
    gpd_role: 'subject',
    gpd_visitor: mine.visitorId,
    gpd_tenant: OTHER,
  }),
  'subject unknown here': () => ({ gpd_role: 'subject', gpd_visitor: 'A'.repeat(22) }),
  reviewer: () => ({ gpd_role: 'reviewer', sub: 'rita' }),
  'reviewer of no tenant': () => ({ gpd_role: 'reviewer', sub: 'rita', gpd_tenant: undefined }),
  'reviewer of another tenant': () => ({ gpd_role: 'reviewer', sub: 'rita', gpd_tenant: OTHER }),
  dpo: () => ({ gpd_role: 'dpo', sub: 'dora' }),
  'dpo of no tenant': () => ({ gpd_role: 'dpo', sub: 'dora', gpd_tenant: undefined }),
  'dpo of another tenant': () => ({ gpd_role: 'dpo', sub: 'dora', gpd_tenant: OTHER }),
  'subject and reviewer': () => ({
    gpd_role: ['subject', 'reviewer', 'astronaut'],
    sub: 'both',
    gpd_visitor: mine.visitorId,
  }),
  'a role that is none': () => ({ gpd_role: 'admin' }),
};

type Expected = number | ErrorCode;

async function expectAnswer(name: string, path: string, body: unknown, expected: Expected): Promise<void> {
  const token = name === 'nobody' ? '' : await rights.as(who[name]?.() ?? {});
  const reply = await rights.call(path, body, token);
  if (typeof expected === 'number')
    expect({ status: reply.status, text: reply.text }).toMatchObject({ status: expected });
  else expectError(reply, expected);
  // RFC 9110 wants it.
  if (reply.status === 401) expect(reply.headers['www-authenticate']).toMatch(/^Bearer/);
}

describe('POST /privacy/contest', () => {
  const table: readonly (readonly [string, () => string, Expected])[] = [
    ['nobody', () => mine.requestId, 'unauthenticated'],
    ['a role that is none', () => mine.requestId, 'unauthenticated'],
    ['subject', () => mine.requestId, 202],
    ['subject', () => theirs.requestId, 'not-your-decision'],
    ['subject', () => foreign.requestId, 'no-such-decision'],
    ['subject', () => `req_${'0'.repeat(26)}`, 'no-such-decision'],
    ['subject without a visitor or a link', () => mine.requestId, 'subject-not-identified'],
    ['subject of no tenant', () => mine.requestId, 'subject-not-identified'],
    ['subject of another tenant', () => mine.requestId, 'no-such-decision'],
    ['subject of another tenant', () => foreign.requestId, 'not-your-decision'],
    ['subject unknown here', () => mine.requestId, 'not-your-decision'],
    ['reviewer', () => mine.requestId, 'subject-only'],
    ['subject and reviewer', () => mine.requestId, 202],
  ];
  it.each(table)('%s', (name, requestId, expected) =>
    expectAnswer(name, '/privacy/contest', { requestId: requestId() }, expected),
  );
});

describe('POST /privacy/contest/resolve', () => {
  const table: readonly (readonly [string, () => string, Expected])[] = [
    ['nobody', () => contestId, 'unauthenticated'],
    ['subject', () => contestId, 'reviewer-only'],
    ['reviewer of no tenant', () => contestId, 'reviewer-tenant-unbound'],
    ['reviewer of another tenant', () => contestId, 'cross-tenant-denied'],
    ['reviewer', () => foreignContestId, 'cross-tenant-denied'],
    ['reviewer', () => `con_${'0'.repeat(26)}`, 'no-such-contest'],
    ['subject and reviewer', () => contestId, 200],
    ['reviewer', () => contestId, 200],
    ['dpo', () => contestId, 200],
  ];
  it.each(table)('%s', (name, id, expected) =>
    expectAnswer(
      name,
      '/privacy/contest/resolve',
      { contestId: id(), outcome: 'upheld', reason: REASON },
      expected,
    ),
  );
});

describe('POST /privacy/dsar', () => {
  const table: readonly (readonly [string, Expected])[] = [
    ['nobody', 'unauthenticated'],
    ['subject', 200],
    ['subject without a visitor or a link', 'subject-not-identified'],
    ['subject of no tenant', 'subject-not-identified'],
    ['subject of another tenant', 'no-data'],
    ['subject unknown here', 'no-data'],
    ['reviewer', 'staff-export-elsewhere'],
    ['dpo', 'staff-export-elsewhere'],
    ['subject and reviewer', 200],
  ];
  it.each(table)('%s', (name, expected) => expectAnswer(name, '/privacy/dsar', {}, expected));
});

describe('POST /privacy/erase', () => {
  const table: readonly (readonly [string, () => object, Expected])[] = [
    ['nobody', () => ({}), 'unauthenticated'],
    ['subject', () => ({ visitorId: theirs.visitorId }), 'not-your-data'],
    ['subject', () => ({ visitorId: 'B'.repeat(22) }), 'not-your-data'],
    ['subject', () => ({ requestId: mine.requestId }), 'invalid-request'],
    ['subject without a visitor or a link', () => ({}), 'subject-not-identified'],
    ['subject of no tenant', () => ({}), 'subject-not-identified'],
    ['subject unknown here', () => ({}), 200],
    ['subject of another tenant', () => ({}), 200],
    ['reviewer', () => ({ visitorId: mine.visitorId }), 'not-your-data'],
    ['dpo', () => ({}), 'not-your-data'],
    ['dpo', () => ({ visitorId: mine.visitorId, requestId: mine.requestId }), 'invalid-request'],
    ['dpo of no tenant', () => ({ visitorId: mine.visitorId }), 'reviewer-tenant-unbound'],
    ['dpo of another tenant', () => ({ durableId: `${KID}|x` }), 'cross-tenant-denied'],
    ['dpo of another tenant', () => ({ requestId: mine.requestId }), 'cross-tenant-denied'],
    ['dpo of another tenant', () => ({ visitorId: mine.visitorId }), 200],
    ['dpo', () => ({ requestId: foreign.requestId }), 'cross-tenant-denied'],
    ['dpo', () => ({ requestId: 'req_unknown' }), 200],
    ['dpo', () => ({ durableId: `${KID}|unknown` }), 200],
    ['dpo', () => ({ visitorId: 'unknown' }), 200],
    ['dpo', () => ({ principalId: 'unknown' }), 200],
  ];
  const count = async (...visits: readonly Visit[]): Promise<number> => {
    const ids = visits.map((visit) => `'${visit.requestId}'`).join();
    return (await rights.sql(`SELECT 1 FROM decisions WHERE request_id IN (${ids})`)).length;
  };
  it.each(table)('%s', async (name, body, expected) => {
    await expectAnswer(name, '/privacy/erase', body(), expected);
    // The refused erasures deleted nothing.
    expect(await count(mine, theirs, foreign)).toBe(3);
  });

  it('takes what is named, where that is allowed', async () => {
    expect(await count(leaving, departed)).toBe(2);
    await expectAnswer('subject who leaves', '/privacy/erase', { visitorId: leaving.visitorId }, 200);
    await expectAnswer('dpo', '/privacy/erase', { requestId: departed.requestId }, 200);
    expect(await count(leaving, departed)).toBe(0);
  });
});

describe('order of refusals', () => {
  it.each(ROUTES)('%s: 401 before the body, and 405 with Allow', async (path) => {
    const reply = await rights.call(path, 'no json');
    expectError(reply, 'unauthenticated');
    expect(reply.headers['www-authenticate']).toMatch(/^Bearer/);
    const got = await ask(rights.gpd.url, path);
    expectError(got, 'method-not-allowed');
    expect(got.headers['allow']).toContain('POST');
  });

  it.each(ROUTES)('%s: the role before the body', async (path) => {
    const reviewer = path.endsWith('resolve') ? { gpd_role: 'subject' } : { gpd_role: 'reviewer' };
    const reply = await rights.call(path, 'no json', await rights.as(reviewer));
    expect(reply.status).toBe(403);
  });

  it.each(ROUTES)('%s: the body before what it names', async (path) => {
    const claims = path.endsWith('resolve') ? who['reviewer']?.() : who['subject']?.();
    const token = await rights.as(claims ?? {});
    expectError(await rights.call(path, '{"a":', token), 'invalid-json');
    expectError(await rights.call(path, { surprise: 1 }, token), 'invalid-request');
    expectError(await rights.call(path, 'x'.repeat(32_769), token), 'payload-too-large');
    const text = { 'content-type': 'text/plain' };
    expectError(await rights.call(path, '{}', token, text), 'unsupported-media-type');
  });
});

/** One of each kind; test/auth has them all. */
async function createHostileTokens(): Promise<readonly string[]> {
  const { idp } = rights;
  const claims = idp.claims({ gpd_role: ['subject', 'reviewer', 'dpo'], gpd_tenant: KID });
  const [header, payload, signature] = idp.forge(claims).split('.');
  const attacker = await createKey('ES256');
  return [
    `${encodePart({ alg: 'none' })}.${payload}.`,
    `${header}.${payload}.${signature}==`,
    signJws({ alg: 'ES256', kid: idp.keys.ES256.kid }, claims, attacker),
    idp.forge({ ...claims, exp: Math.floor(Date.now() / 1000) - 60 }),
    idp.forge({ ...claims, aud: 'https://other.example' }),
    idp.forge({ ...claims, gpd_role: 'admin' }),
    idp.forge({ ...claims, pad: 'x'.repeat(7000) }),
  ];
}

describe('a hostile token', () => {
  it.each(ROUTES)(
    'is refused by %s as any other is, and neither it nor a claim is in the log',
    async (path) => {
      const tokens = await createHostileTokens();
      for (const token of tokens) expectError(await rights.call(path, {}, token), 'unauthenticated');
      const logs = rights.gpd.logs();
      const parts = tokens.flatMap((token) => [
        token,
        ...token.split('.').filter(({ length }) => length > 40),
      ]);
      expect(parts.filter((part) => logs.includes(part))).toEqual([]);
    },
  );

  it('is told what to set while no identity provider is configured', async () => {
    const gpd = await startGpd();
    const reply = await postJson(gpd.url, '/privacy/dsar', {}, { authorization: 'Bearer x' });
    expect(JSON.stringify(expectError(reply, 'unauthenticated'))).toContain('GPD_OIDC_ISSUER');
    await gpd.stop();
  });
});
