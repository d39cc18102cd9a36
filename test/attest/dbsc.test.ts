import { generateKeyPairSync, sign } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { isProven, readProof } from '../../src/attest/proof.ts';
import { addApiKey } from '../support/api-key.ts';
import { KID, ORIGIN, OTHER } from '../support/constants.ts';
import {
  boundOf,
  type DeviceKey,
  type Instructions,
  makeDeviceKey,
  type ProofOptions,
  proofOf,
  send,
} from '../support/dbsc.ts';
import { expectCore, expectError, post, SEEN_WITHIN } from '../support/expect.ts';
import { ask, postJson, type Reply } from '../support/http.ts';
import { create, makePasskey } from '../support/passkey.ts';
import { makeBundle } from '../support/seal.ts';
import type { Gpd } from '../support/server.ts';
import { call, challengeOf, PURPOSES, SUB, startShops, twin, type Visit, visit } from './support.ts';

/** Device-bound sessions over HTTP with a browser that is played (ADR 0051). */

let gpd: Gpd;
let now = Date.now();
let secret: string;
beforeAll(async () => {
  gpd = await startShops(() => now, { kid: 'plain', origins: [ORIGIN] });
  for (const kid of [KID, OTHER]) await gpd.cli(['tenants', 'set', kid, 'attest.dbsc=true']);
  secret = await addApiKey(gpd);
  await vi.waitFor(
    async () => expect((await visit(gpd, { target: gpd.targets[1]! })).registration).not.toBeNull(),
    SEEN_WITHIN,
  );
});
afterAll(() => gpd.stop());

interface Bound {
  readonly at: Visit;
  readonly key: DeviceKey;
  readonly id: string;
  readonly refreshUrl: string;
  readonly cookie: string;
}

interface Over extends ProofOptions {
  readonly challenge?: string;
  readonly session?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What the browser sends once it has read the header. */
function register(at: Visit, key: DeviceKey, over: Over = {}): Promise<Reply> {
  const { path = '', challenge = '', authorization } = at.registration ?? {};
  const claims = { authorization, ...over.claims };
  const proof = proofOf(key, over.challenge ?? challenge, true, { ...over, claims });
  return send(gpd.url, path, `gp_session=${over.session ?? at.session}`, {
    'secure-session-response': `"${proof}"`,
    ...over.headers,
  });
}

async function bind(at: Visit, key = makeDeviceKey()): Promise<Bound> {
  const reply = await register(at, key);
  expect([reply.status, reply.text]).toEqual([200, expect.any(String)]);
  const { session_identifier: id, refresh_url: refreshUrl } = reply.json() as Instructions;
  return { at, key, id, refreshUrl, cookie: boundOf(reply).value };
}

const asksRefresh = ({ at, id, refreshUrl }: Bound, headers = {}, session = at.session): Promise<Reply> =>
  send(gpd.url, refreshUrl, `gp_session=${session}`, { 'sec-secure-session-id': `"${id}"`, ...headers });

async function challengeFor(bound: Bound): Promise<string> {
  const reply = await asksRefresh(bound);
  expect(reply.status).toBe(403);
  const [, challenge = '', id] =
    /^"([^"]+)";id="([^"]+)"$/.exec(String(reply.headers['secure-session-challenge'])) ?? [];
  expect(id).toBe(bound.id);
  expect(reply.headers['set-cookie']).toBeUndefined();
  return challenge;
}

async function refresh(bound: Bound, key = bound.key, over: ProofOptions = {}): Promise<Reply> {
  const proof = proofOf(key, await challengeFor(bound), false, over);
  return asksRefresh(bound, { 'secure-session-response': proof });
}

/** The next page of the same browser. */
const again = ({ at }: Bound, cookie: string, options = {}): Promise<Visit> =>
  visit(gpd, { headers: { cookie: `gp_session=${at.session}; gp_bound=${cookie}` }, ...options });

const me = (at: Visit, bound: string | null): Promise<Reply> =>
  postJson(
    gpd.url,
    '/me',
    { token: at.token, action: 'view' },
    { origin: at.origin, cookie: `gp_session=${at.session}${bound === null ? '' : `; gp_bound=${bound}`}` },
  );

describe('a session that a browser binds', () => {
  it('is told in the next answers and decisions, and the cookie alone is worth nothing from then on', async () => {
    const first = await visit(gpd);
    expect(first.answer).not.toHaveProperty('attested');
    const bound = await bind(first);
    const next = await again(bound, bound.cookie);
    expect(next.answer.attested).toEqual({ by: 'dbsc', deviceBound: true });
    expect(next.registration).toBeNull();
    const { visitorId, class: kind, suspectScore, needsAttestation } = first.answer;
    expect(next.answer).toMatchObject({ visitorId, class: kind, suspectScore, needsAttestation });
    const headers = { authorization: `Bearer ${secret}` };
    const told = await ask(gpd.url, `/v1/decisions/${next.answer.requestId}`, { headers });
    expect(told.json()).toMatchObject({ attested: { by: 'dbsc', deviceBound: true } });
    const another = await bind(await visit(gpd));
    for (const at of [first, next]) {
      expectError(await me(at, null), 'unauthenticated');
      expectError(await me(at, another.cookie), 'unauthenticated');
      expectError(await call(gpd, 'options', at, {}), 'unauthenticated');
      // Nothing is retained here: the token was taken.
      expectError(await me(at, bound.cookie), 'no-retained-data');
    }
  });

  it('lets a later bundle supersede its verdict only with a recent proof of the key', async () => {
    const update = ({ answer, origin, session }: Visit, bound?: string): Promise<Reply> => {
      const parts = { signals: twin(), consent: { purposes: PURPOSES }, after: answer.requestId };
      const cookie = `gp_session=${session}${bound === undefined ? '' : `; gp_bound=${bound}`}`;
      return post(gpd.url, makeBundle(gpd.targets[0]!, parts as never), { origin, cookie });
    };
    const first = await visit(gpd);
    expectCore(await update(first), 'ok');
    const bound = await bind(await visit(gpd));
    const another = await bind(first);
    const next = await again(bound, bound.cookie);
    for (const at of [bound.at, next]) {
      expectError(await update(at), 'unauthenticated');
      expectError(await update(at, another.cookie), 'unauthenticated');
      expectCore(await update(at, bound.cookie), 'ok');
    }
  });

  it('has instructions that cover the paths where a token or a bundle is taken, and no others', async () => {
    const reply = await register(await visit(gpd), makeDeviceKey());
    const { credentials, ...rest } = reply.json() as { credentials: { attributes: string }[] };
    expect(rest).toEqual({
      session_identifier: expect.stringMatching(/^[\w-]{100,600}$/),
      refresh_url: '/_fp/attest/v1/session/refresh',
      scope: { include_site: false, scope_specification: [] },
    });
    const paths = ['/_fp/', '/me', '/my-data', '/v1/principals/link'];
    expect(boundOf(reply).paths).toEqual(paths);
    expect(credentials).toEqual(
      paths.map((path) => ({
        type: 'cookie',
        name: 'gp_bound',
        attributes: `HttpOnly; Secure; SameSite=Strict; Path=${path}`,
      })),
    );
    expect(reply.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('is good for five minutes, and for five more with each proof of its key', async () => {
    const begun = now;
    const bound = await bind(await visit(gpd));
    now = begun + 299_000;
    expect((await again(bound, bound.cookie)).answer.attested).toBeDefined();
    now = begun + 300_000;
    expect((await again(bound, bound.cookie)).answer.attested).toBeUndefined();
    const { value } = boundOf(await refresh(bound));
    now = begun + 590_000;
    expect((await again(bound, value)).answer.attested).toBeDefined();
    now = begun + 31 * 86_400_000;
    expectError(await asksRefresh(bound), 'unauthenticated');
    now = begun;
  });

  it('may make a passkey as well, and its new token is as much bound', async () => {
    const bound = await bind(await visit(gpd));
    const next = await again(bound, bound.cookie);
    const headers = { cookie: `gp_session=${next.session}; gp_bound=${bound.cookie}` };
    const { publicKey } = (await call(gpd, 'options', next, {}, { headers })).json() as {
      publicKey: { challenge: string };
    };
    const credential = create(makePasskey(), { origin: ORIGIN, challenge: publicKey.challenge });
    const made = await call(gpd, 'verify', next, { credential }, { headers });
    expect(made.json()).toMatchObject({ attested: { by: 'passkey' } });
    const token = (made.json() as { transparencyToken: string }).transparencyToken;
    expectError(await me({ ...next, token }, null), 'unauthenticated');
    expectError(await me({ ...next, token }, bound.cookie), 'no-retained-data');
  });
});

describe('who is offered it', () => {
  it.each([
    ['without the purpose', { purposes: ['device-identification'] }],
    ['whose page is not of the tenant', { origin: 'https://evil.example' }],
  ])('nobody %s', async (_what, options) => {
    expect((await visit(gpd, options)).registration).toBeNull();
  });

  it('nobody of a tenant that has it off, and its sessions are as before', async () => {
    const at = await visit(gpd, { target: gpd.targets[2]! });
    expect(at.registration).toBeNull();
    expect(at.session).toMatch(/^[\w-]{43}$/);
    const bound = await bind(await visit(gpd));
    const next = await again(bound, bound.cookie, { target: gpd.targets[2]! });
    expect(next.answer).not.toHaveProperty('attested');
  });

  it('the cookie of one tenant or origin proves nothing to another', async () => {
    const bound = await bind(await visit(gpd));
    for (const options of [{ target: gpd.targets[1]! }, { origin: SUB }]) {
      const next = await again(bound, bound.cookie, options);
      expect(next.answer).not.toHaveProperty('attested');
      expect(next.registration).not.toBeNull();
    }
    expect((await again(bound, `${bound.cookie.slice(0, -2)}AA`)).answer).not.toHaveProperty('attested');
    // What is sealed as one thing is not the other.
    expect((await again(bound, bound.id)).answer).not.toHaveProperty('attested');
    expectError(await asksRefresh({ ...bound, id: bound.cookie }), 'unauthenticated');
  });
});

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a registration that proves nothing', () => {
  it('is one and the same 400, and binds nothing', async () => {
    const [at, other] = [await visit(gpd), await visit(gpd)];
    const key = makeDeviceKey();
    const p384 = makeDeviceKey('P-384');
    const authorization = at.registration?.authorization;
    const challenge = at.registration?.challenge ?? '';
    const good = proofOf(key, challenge, true, { claims: { authorization } });
    const [head = '', claims = '', signature = ''] = good.split('.');
    const rs256 = `${encode({ alg: 'RS256', typ: 'dbsc+jwt', jwk: rsa.publicKey.export({ format: 'jwk' }) })}.${claims}`;
    const none = encode({ alg: 'none', typ: 'dbsc+jwt', jwk: key.jwk });
    const sealed = sign('sha256', Buffer.from(rs256), rsa.privateKey).toString('base64url');
    const raw = (proof: string) =>
      send(gpd.url, at.registration?.path ?? '', `gp_session=${at.session}`, {
        'secure-session-response': proof,
      });
    const made: readonly (readonly [string, Promise<Reply>])[] = [
      ['nothing', raw('')],
      ['no JWT', raw('a.b')],
      ['alg none', raw(`${none}.${claims}.`)],
      ['alg none with a signature', raw(`${none}.${claims}.${signature}`)],
      ['RS256', raw(`${rs256}.${sealed}`)],
      ['RS256 by name', register(at, key, { head: { alg: 'RS256' } })],
      ['HS256', register(at, key, { head: { alg: 'HS256' } })],
      ['ES384', register(at, p384, { head: { alg: 'ES384', jwk: p384.jwk }, hash: 'sha384' })],
      ['a key of another curve', register(at, p384)],
      ['another type', register(at, key, { head: { typ: 'JWT' } })],
      ['no key', register(at, key, { head: { jwk: undefined } })],
      ['a foreign key', register(at, key, { head: { jwk: makeDeviceKey().jwk } })],
      ['a key off the curve', register(at, key, { head: { jwk: { ...key.jwk, x: key.jwk.y } } })],
      ['what must be understood', register(at, key, { head: { crit: ['b64'], b64: false } })],
      [
        'a signature in another spelling',
        raw(
          `${head}.${claims}.${signature.slice(0, -1)}${'BRhx'.charAt('AQgw'.indexOf(signature.slice(-1)))}`,
        ),
      ],
      ['more than 4,096 characters', register(at, key, { claims: { more: 'x'.repeat(4000) } })],
      [
        'the challenge of another visit',
        register(at, key, { challenge: other.registration?.challenge ?? '' }),
      ],
      ['a challenge of its own', register(at, key, { challenge: Buffer.alloc(54, 7).toString('base64url') })],
      ['the challenge of a passkey', register(at, key, { challenge: await challengeOf(gpd, at) })],
    ];
    const texts = new Set<string>();
    for (const [what, asked] of made) {
      const reply = await asked;
      expect([what, reply.status]).toEqual([what, 400]);
      expectError(reply, 'attestation-failed');
      texts.add(reply.text);
    }
    expect(texts.size).toBe(1);
    const first = await raw(good);
    expect(first.status).toBe(200);
    // Once, whatever key comes the second time.
    expectError(await raw(good), 'attestation-failed');
    expectError(await register(at, makeDeviceKey()), 'attestation-failed');
  });

  it('is 401 where the token is none of this session, tenant or page', async () => {
    const [at, other] = [await visit(gpd), await visit(gpd)];
    const foreign = await visit(gpd, { target: gpd.targets[1]! });
    const token = at.token;
    const replies = await Promise.all([
      register(at, makeDeviceKey(), { session: other.session }),
      register(at, makeDeviceKey(), { claims: { authorization: undefined } }),
      register(at, makeDeviceKey(), { claims: { authorization: `${SUB} ${token}` } }),
      register(at, makeDeviceKey(), { claims: { authorization: `${ORIGIN} ${other.token}` } }),
      register(at, makeDeviceKey(), { headers: { origin: 'https://evil.example' } }),
      register(foreign, makeDeviceKey(), { session: at.session }),
    ]);
    for (const reply of replies) expectError(reply, 'unauthenticated');
    // The token of another tenant's visit in the same browser has another challenge.
    const crossed = register(
      { ...foreign, registration: { ...foreign.registration!, challenge: at.registration!.challenge } },
      makeDeviceKey(),
    );
    expectError(await crossed, 'attestation-failed');
  });

  it('comes after five minutes', async () => {
    const begun = now;
    const at = await visit(gpd);
    now = begun + 300_000;
    expectError(await register(at, makeDeviceKey()), 'unauthenticated');
    now = begun + 299_000;
    expect((await register(at, makeDeviceKey())).status).toBe(200);
    now = begun;
  });
});

describe('a refresh', () => {
  it('that proves nothing is one and the same 400', async () => {
    const [bound, other] = [await bind(await visit(gpd)), await bind(await visit(gpd))];
    const begun = now;
    const good = proofOf(bound.key, await challengeFor(bound), false);
    const foreign = await challengeFor(other);
    const old = await challengeFor(bound);
    const withProof = (proof: string): Promise<Reply> =>
      asksRefresh(bound, { 'secure-session-response': proof });
    const made: readonly (readonly [string, () => Promise<Reply>])[] = [
      ['a foreign key', () => refresh(bound, makeDeviceKey())],
      ['a foreign key in the header', () => refresh(bound, other.key, { head: { jwk: other.key.jwk } })],
      ['its own key in the header', () => refresh(bound, bound.key, { head: { jwk: bound.key.jwk } })],
      ['alg none', () => refresh(bound, bound.key, { head: { alg: 'none' } })],
      ['the challenge of another session', () => withProof(proofOf(bound.key, foreign, false))],
      [
        'the registration’s challenge',
        () => withProof(proofOf(bound.key, bound.at.registration!.challenge, false)),
      ],
      [
        'an old challenge',
        () => {
          now = begun + 300_000;
          return withProof(proofOf(bound.key, old, false));
        },
      ],
    ];
    const texts = new Set<string>();
    for (const [what, asked] of made) {
      const reply = await asked();
      now = begun;
      expect([what, reply.status]).toEqual([what, 400]);
      texts.add(reply.text);
    }
    expect(texts.size).toBe(1);
    const replies = await Promise.all([withProof(good), withProof(good)]);
    expect(replies.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 400]);
  });

  it('of no session is 401, and of one whose visit was erased 404', async () => {
    const bound = await bind(await visit(gpd));
    expectError(await asksRefresh({ ...bound, id: '' }), 'unauthenticated');
    expectError(await asksRefresh({ ...bound, id: `${bound.id.slice(0, -2)}AA` }), 'unauthenticated');
    expectError(await asksRefresh(bound, { origin: 'https://evil.example' }), 'unauthenticated');
    const forgotten = await postJson(
      gpd.url,
      '/me',
      { token: bound.at.token, action: 'forget' },
      { origin: ORIGIN, cookie: `gp_session=${bound.at.session}; gp_bound=${bound.cookie}` },
    );
    expect(forgotten.status).toBe(200);
    expectError(await asksRefresh(bound), 'no-retained-data');
  });

  it('is refused at once where the next bundle comes without the purpose, or the browser says GPC', async () => {
    const bound = await bind(await visit(gpd));
    expectError(await asksRefresh(bound, { 'sec-gpc': '1' }), 'consent-missing');
    const next = await again(bound, bound.cookie, { purposes: ['device-identification'] });
    expect(next.answer).not.toHaveProperty('attested');
    expectError(await asksRefresh(bound, {}, next.session), 'consent-missing');
    const proof = proofOf(bound.key, await challengeFor(bound), false);
    expectError(
      await asksRefresh(bound, { 'secure-session-response': proof }, next.session),
      'consent-missing',
    );
    // Who no longer wants to be bound still reaches what is theirs.
    expectError(await me(next, null), 'no-retained-data');
  });
});

describe('the draft', () => {
  /** From the draft (section Secure-Session-Response). Its key is in the claims, as an earlier draft had it, and its signature is of none. */
  const EXAMPLE =
    'eyJhbGciOiJFUzI1NiIsInR5cCI6ImRic2Mrand0In0.eyJhdWQiOiJodHRwczovL2V4YW1wbGUuY29tL3JlZyIsImp0aSI6ImN2IiwiaWF0IjoiMTcyNTU3OTA1NSIsImp3ayI6eyJrdHkiOiJFQyIsImNydiI6IlAtMjU2IiwieCI6IjZfR0Iydm9RMHFyb01oNk9sREZDRlNfU0pyaVFpMVBUdnZCT2hHWjNiSEkiLCJ5IjoiSWVnT0pVTHlFN1N4SF9DZDFLQ0VSN2xXQnZHRkhRLWgweHlqelVqRUlXRSJ9LCJhdXRob3JpemF0aW9uIjoiYWMifQ.6Fb_vVBDmfNghQiBmIGe8o7tBfYPbPCywhQruP0vIhxgmcJmuNTaMHeVn_M8ZnOm1_bzIitbZqCWEn-1Qzmtyw';

  it('has an example that is read, and proves nothing', async () => {
    const proof = readProof(`"${EXAMPLE}"`);
    expect(proof).toMatchObject({ jti: 'cv', authorization: 'ac', jwk: null });
    const key = {
      x: '6_GB2voQ0qroMh6OlDFCFS_SJriQi1PTvvBOhGZ3bHI',
      y: 'IegOJULyE7SxH_Cd1KCER7lWBvGFHQ-h0xyjzUjEIWE',
    };
    expect(await isProven(proof!, key)).toBe(false);
  });
});

describe('consent that is proven by the ledger', () => {
  it('withdrawn since refuses registration and refresh at once', async () => {
    await gpd.cli(['tenants', 'set', KID, 'consent.basis=ledger']);
    const authorization = `Bearer ${secret}`;
    const write = (action: string, principalId: string, purposes = PURPOSES) =>
      postJson(gpd.url, `/v1/consent/${action}`, { principalId, purposes }, { authorization });
    const proven = async (principalId: string): Promise<Visit> => {
      await write('grant', principalId);
      const body = { principalId, purpose: 'device-identification' };
      const check = await postJson(gpd.url, '/v1/consent/can-process', body, { authorization });
      const { proof } = check.json() as { proof: { seq: number; hash: string } };
      return visit(gpd, { consent: { principalId, proof } });
    };
    await vi.waitFor(
      async () => expect((await proven('warm-up')).answer.consentState.basis).toBe('proven'),
      SEEN_WITHIN,
    );
    const bound = await bind(await proven('dora'));
    expect((await refresh(bound)).status).toBe(200);
    const [at, proof] = [await proven('dora'), proofOf(bound.key, await challengeFor(bound), false)];
    await write('withdraw', 'dora', ['device-attestation']);
    expectError(await register(at, makeDeviceKey()), 'consent-missing');
    expectError(await asksRefresh(bound), 'consent-missing');
    expectError(await asksRefresh(bound, { 'secure-session-response': proof }), 'consent-missing');
    const next = await again(bound, bound.cookie, { consent: { principalId: 'dora' } }).catch(() => null);
    expect(next?.answer.attested).toBeUndefined();
  });
});
