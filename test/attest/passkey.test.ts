import { beforeAll, describe, expect, it } from 'vitest';
import { ingestResponseSchema } from '../../src/schema/responses.ts';
import { addApiKey } from '../support/api-key.ts';
import { KID, ORIGIN, OTHER, OTHER_ORIGIN, REASON } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { expectError } from '../support/expect.ts';
import { ask, postJson, type Reply } from '../support/http.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { certified, create, createPasskey, get, type Passkey } from './authenticator.ts';
import { call, challengeOf, forget, SUB, twin, type Visit, type VisitOptions, visit } from './support.ts';

/** Passkeys over HTTP, with an authenticator in software (contract-2 section 16). */

const gpd = started(() =>
  startGpd({
    tenants: [
      { kid: KID, origins: [ORIGIN, SUB] },
      { kid: OTHER, origins: [OTHER_ORIGIN, ORIGIN] },
    ],
    settings: { GPD_RATE_PRIVACY: 'off', GPD_MAX_CLOCK_SKEW: '86400' },
    app: { clock: () => now },
  }),
);
let now = Date.now();
let secret: string;
beforeAll(async () => {
  secret = await addApiKey(gpd);
});

const sql = (text: string) => execute(gpd.dataDir, text);
const count = async (table: string): Promise<number> =>
  Number((await sql(`SELECT COUNT(*) AS n FROM ${table}`))[0]?.['n']);

const attested = (reply: Reply) => {
  expect([reply.status, reply.text]).toEqual([200, expect.any(String)]);
  return ingestResponseSchema.parse(reply.json());
};

async function register(at: Visit, key: Passkey, synced = false): Promise<Reply> {
  const challenge = await challengeOf(gpd, at);
  return call(gpd, 'verify', at, { credential: create(key, { origin: at.origin, challenge, synced }) });
}

async function use(at: Visit, key: Passkey): Promise<Reply> {
  const challenge = await challengeOf(gpd, at, 'get');
  return call(gpd, 'verify', at, { credential: get(key, { origin: at.origin, challenge }) });
}

describe('two phones that look the same', () => {
  it('have one id, and two once each has made a passkey', async () => {
    const [one, two] = [await visit(gpd), await visit(gpd)];
    expect(two.answer).toMatchObject({ visitorId: one.answer.visitorId, needsAttestation: true });
    const first = attested(await register(one, createPasskey()));
    const second = attested(await register(two, createPasskey(), true));
    expect(first).toMatchObject({
      confidence: 0.6,
      needsAttestation: false,
      attested: { by: 'passkey', deviceBound: true },
      class: one.answer.class,
      suspectScore: one.answer.suspectScore,
      consentState: one.answer.consentState,
      reason: 'ok',
    });
    expect(second.attested).toEqual({ by: 'passkey', deviceBound: false });
    const ids = [one.answer.visitorId, first.visitorId, second.visitorId];
    expect(new Set(ids).size).toBe(3);
    expect(first.requestId).not.toBe(one.answer.requestId);
    // The token of the new decision is good in the same session, and needs no second passkey.
    const next = { ...one, token: first.transparencyToken ?? '' };
    expectError(await call(gpd, 'options', next, {}), 'no-retained-data');
  });

  it('are known again by the same passkey, with a decision of its own that the backend reads', async () => {
    const key = createPasskey(1);
    const first = attested(await register(await visit(gpd), key));
    key.counter = 2;
    const again = attested(await use(await visit(gpd), key));
    expect(again).toMatchObject({ visitorId: first.visitorId, confidence: 0.99, needsAttestation: false });
    const headers = { authorization: `Bearer ${secret}` };
    const reply = await ask(gpd.url, `/v1/decisions/${again.requestId}`, { headers });
    expect(reply.json()).toMatchObject({
      visitorId: first.visitorId,
      attested: { by: 'passkey', deviceBound: true },
      needsAttestation: false,
    });
  });

  it('keep class and score, whatever they are: a driven browser stays one', async () => {
    const signals = twin();
    signals.page['webdriver'] = true;
    const driven = await visit(gpd, { signals });
    expect(driven.answer).toMatchObject({ class: 'undeclared_automation', smartSignals: { bot: true } });
    const { class: kind, suspectScore, smartSignals } = driven.answer;
    expect(attested(await register(driven, createPasskey()))).toMatchObject({
      class: kind,
      suspectScore,
      smartSignals,
    });
  });

  it('are forgotten with the passkey, which then proves nothing', async () => {
    const key = createPasskey();
    const at = await visit(gpd);
    const answer = attested(await register(at, key));
    const reply = await forget(gpd, { ...at, token: answer.transparencyToken ?? '' });
    expect(reply.json()).toMatchObject({
      shared: false,
      scopes: expect.arrayContaining([{ scope: 'credentials', action: 'erased', count: 1 }]),
    });
    expectError(await use(await visit(gpd), key), 'attestation-failed');
  });
});

describe('the options', () => {
  it('are those of a discoverable credential without attestation, for the host of the page', async () => {
    const at = await visit(gpd);
    const authenticatorSelection = { residentKey: 'required', userVerification: 'preferred' };
    expect((await call(gpd, 'options', at, {})).json()).toMatchObject({
      ceremony: 'create',
      publicKey: { rp: { id: 'shop.example' }, attestation: 'none', authenticatorSelection },
    });
    const publicKey = { rpId: 'shop.example', allowCredentials: [], userVerification: 'preferred' };
    const got = await call(gpd, 'options', at, { ceremony: 'get' });
    expect(got.json()).toMatchObject({ ceremony: 'get', publicKey });
    expectError(await call(gpd, 'options', at, { ceremony: 'steal' }), 'invalid-request');
  });

  it('name the parent that the tenant has set, where the page is below it', async () => {
    await gpd.json(['tenants', 'set', KID, 'attest.rpId=shop.example']);
    await expect
      .poll(async () => {
        const at = await visit(gpd, { origin: SUB });
        const { publicKey } = (await call(gpd, 'options', at, {})).json() as { publicKey: { rp: object } };
        return publicKey.rp;
      })
      .toMatchObject({ id: 'shop.example' });
    await gpd.json(['tenants', 'set', KID, 'attest.rpId=']);
  });

  it('are given to a page of the tenant alone, by CORS as ingest', async () => {
    const preflight = await ask(gpd.url, '/_fp/attest/v1/options', {
      method: 'OPTIONS',
      headers: { origin: ORIGIN, 'access-control-request-method': 'POST' },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'POST',
    });
    const at = await visit(gpd);
    expect((await call(gpd, 'options', at, {})).headers['access-control-allow-origin']).toBe(ORIGIN);
    const elsewhere = await call(gpd, 'options', at, {}, { origin: 'https://evil.example' });
    expect(elsewhere.headers['access-control-allow-origin']).toBeUndefined();
  });
});

describe('who may ask', () => {
  it.each(['options', 'verify'] as const)('every failure of the token is one 401: %s', async (path) => {
    const [at, another] = [await visit(gpd), await visit(gpd)];
    const foreign = await visit(gpd, { target: gpd.targets[1]!, origin: OTHER_ORIGIN });
    const replies = [
      await call(gpd, path, at, {}, { token: null }),
      await call(gpd, path, at, {}, { token: `${at.token}A` }),
      await call(gpd, path, at, {}, { session: another.session }),
      await call(gpd, path, at, {}, { origin: SUB }),
      await call(gpd, path, foreign, {}, { origin: ORIGIN }),
    ];
    for (const reply of replies) expectError(reply, 'unauthenticated');
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
  });

  const refused: readonly (readonly [string, VisitOptions])[] = [
    ['without the purpose', { purposes: ['device-identification'] }],
    ['with the purpose of another', { purposes: ['device-identification', 'device-attest'] }],
  ];
  it.each(refused)('nobody %s', async (_what, options) => {
    const at = await visit(gpd, options);
    expectError(await call(gpd, 'options', at, {}), 'consent-missing');
    expectError(await call(gpd, 'verify', at, { credential: {} }), 'consent-missing');
  });

  it('nobody whose browser says GPC since, and nobody after the visit was erased', async () => {
    const at = await visit(gpd);
    expectError(await call(gpd, 'options', at, {}, { headers: { 'sec-gpc': '1' } }), 'consent-missing');
    expect((await call(gpd, 'options', at, {})).status).toBe(200);
    await forget(gpd, at);
    expectError(await call(gpd, 'options', at, {}), 'no-retained-data');
  });

  it('nobody whose visit needs no attestation', async () => {
    const plain = twin('plain');
    Object.assign(plain.graphics, { renderer: 'ANGLE (Intel, UHD 620)' });
    const at = await visit(gpd, { signals: plain });
    expect(at.answer.needsAttestation).toBe(false);
    expectError(await call(gpd, 'options', at, {}), 'no-retained-data');
  });
});

describe('a ceremony that proves nothing', () => {
  it('is one and the same 400, and leaves nothing', async () => {
    const at = await visit(gpd);
    const knownPasskey = createPasskey(5);
    attested(await register(await visit(gpd), knownPasskey));
    const before = [await count('credentials'), await count('decisions')];
    const challenge = await challengeOf(gpd, at);
    const got = await challengeOf(gpd, at, 'get');
    const other = await visit(gpd);
    const otherChallenge = await challengeOf(gpd, other);
    const evil = 'https://evil.example';
    const otherId = createPasskey().id.toString('base64url');
    const createFor = (over: object = {}, key = createPasskey()) =>
      create(key, { origin: ORIGIN, challenge, ...over });
    const present = (key: Passkey) => get(key, { origin: ORIGIN, challenge: got });
    const good = createFor();
    const credentials: readonly (readonly [string, unknown])[] = [
      ['nothing', undefined],
      ['a text', 'x'],
      ['an empty object', {}],
      ['no response', { ...good, response: {} }],
      ['another type', { ...good, type: 'password' }],
      ['another id', { ...good, id: otherId }],
      ['both ids another', { ...good, id: 'AAAA', rawId: 'AAAA' }],
      ['a foreign origin', createFor({ origin: evil })],
      ['a foreign origin with our relying party', createFor({ origin: evil, rpId: 'shop.example' })],
      ['a foreign relying party', createFor({ rpId: 'evil.example' })],
      ['a frame of another site', createFor({ over: { crossOrigin: true } })],
      ['the challenge of another visit', createFor({ challenge: otherChallenge })],
      ['the challenge of the other ceremony', createFor({ challenge: got })],
      ['a challenge of one’s own', createFor({ challenge: Buffer.alloc(54, 7).toString('base64url') })],
      ['nobody there', createFor({ flags: 0 })],
      ['a certificate', create(createPasskey(), { origin: ORIGIN, challenge }, certified(), 'packed')],
      ['another format', create(createPasskey(), { origin: ORIGIN, challenge }, undefined, 'tpm')],
      ['a type of client data', createFor({ over: { type: 'webauthn.get' } })],
      ['a passkey that is known already', createFor({}, { ...knownPasskey, counter: 9 })],
      ['a passkey that nobody made here', present(createPasskey())],
      ['a known passkey signed by another', present({ ...createPasskey(), id: knownPasskey.id, counter: 9 })],
      ['a counter that stays', present({ ...knownPasskey, counter: 5 })],
      ['a counter that falls', present({ ...knownPasskey, counter: 0 })],
    ];
    const texts = new Set<string>();
    for (const [fault, credential] of credentials) {
      const reply = await call(gpd, 'verify', at, { credential });
      expect([fault, reply.status]).toEqual([fault, 400]);
      expectError(reply, 'attestation-failed');
      texts.add(reply.text);
    }
    expect(texts.size).toBe(1);
    expect([await count('credentials'), await count('decisions')]).toEqual([before[0], (before[1] ?? 0) + 1]);
    expect(attested(await call(gpd, 'verify', at, { credential: good })).attested).toBeDefined();
    expect(gpd.logs()).toContain('"event":"passkey-cloned"');
  });

  it('a challenge is good once, for the same passkey and for another', async () => {
    const at = await visit(gpd);
    const challenge = await challengeOf(gpd, at);
    const credential = create(createPasskey(), { origin: ORIGIN, challenge });
    const another = create(createPasskey(), { origin: ORIGIN, challenge });
    const replies = await Promise.all(
      [credential, credential, another].map((one) => call(gpd, 'verify', at, { credential: one })),
    );
    expect(replies.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 400, 400]);
    const rows = await count('credentials');
    expectError(await call(gpd, 'verify', at, { credential }), 'attestation-failed');
    expect(await count('credentials')).toBe(rows);
  });

  it('a challenge is good for five minutes, and the token no longer', async () => {
    const at = await visit(gpd);
    const challenge = await challengeOf(gpd, at);
    const credential = create(createPasskey(), { origin: ORIGIN, challenge });
    const askedAt = now;
    now = askedAt + 300_000;
    expectError(await call(gpd, 'verify', at, { credential }), 'unauthenticated');
    now = askedAt + 299_000;
    expect((await call(gpd, 'verify', at, { credential })).status).toBe(200);
    now = askedAt;
  });

  it('a passkey of one tenant is unknown to another tenant', async () => {
    const key = createPasskey();
    attested(await register(await visit(gpd), key));
    const there = await visit(gpd, { target: gpd.targets[1]! });
    expectError(await use(there, key), 'attestation-failed');
  });
});

it('what is kept names no credential, neither in rows nor in the log', async () => {
  const key = createPasskey();
  await register(await visit(gpd), key);
  const id = key.id.toString('base64url');
  const rows = [await sql('SELECT * FROM credentials'), await sql('SELECT * FROM decisions')];
  expect(JSON.stringify(rows)).not.toContain(id);
  expect(gpd.logs()).not.toContain(id);
});

it('a person whom a review confirmed since the visit is called no bot after it', async () => {
  const signals = twin('reviewed');
  signals.page['webdriver'] = true;
  const driven = await visit(gpd, { signals });
  const { origin, session, token } = driven;
  const body = { token, action: 'contest', statement: 'I am a person.' };
  const filed = await postJson(gpd.url, '/me', body, { origin, cookie: `gp_session=${session}` });
  const { contestId } = filed.json() as { contestId: string };
  const ruling = ['--outcome', 'overturned', '--reason', REASON, '--yes'];
  await gpd.json(['contests', 'resolve', contestId, ...ruling]);
  expect(attested(await register(driven, createPasskey()))).toMatchObject({
    class: 'human',
    smartSignals: { bot: false },
    suspectScore: 0.2,
  });
});
