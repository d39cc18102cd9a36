import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addApiKey } from '../../support/api-key.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { dumpDatabase, execute } from '../../support/database.ts';
import { expectCore, expectError, post, sessionOf } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { headlessChrome } from '../../support/samples.ts';
import { createBundle, createNonce, flipByte, makePlaintext, seal, sealUnder } from '../../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../../support/server.ts';

let gpd: Gpd;
let limited: Gpd;
let acme: SealTarget;
beforeAll(async () => {
  [gpd, limited] = await Promise.all([startGpd(), startGpd({ settings: { GPD_RATE_INGEST: '1/600' } })]);
  acme = gpd.targets[0]!;
  expectCore(await post(limited.url, createBundle(limited.targets[0]!)), 'ok');
});
afterAll(() => Promise.all([gpd.stop(), limited.stop()]));

const badTag = () => {
  const bundle = createBundle(acme);
  return { ...bundle, ct: flipByte(bundle.ct, -1) };
};
const stranger = () => sealUnder('nobody', Buffer.alloc(32, 7), makePlaintext());

/** Table E1 of the interface, row by row. */
describe('ingest outcomes', () => {
  it('200 ok: a person is identified and gets a token', async () => {
    const body = expectCore(await post(gpd.url, createBundle(acme), { origin: ORIGIN }), 'ok');
    expect(body).toMatchObject({ class: 'human', confidence: 0.6, deviceId: null, declaredAgentId: null });
    expect(body.visitorId).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(body.transparencyToken).toMatch(/^[A-Za-z0-9_-]{60,}$/);
    expect(body.smartSignals).toEqual({ bot: false, incognito: false, tampered: false, inconsistency: 0 });
    expect(body.suspectScore).toBeLessThanOrEqual(0.1);
  });

  it('200 ok: a driven browser is automation', async () => {
    const signals = headlessChrome();
    const agent = { 'user-agent': String(signals.page['userAgent']) };
    const body = expectCore(await post(gpd.url, createBundle(acme, { signals }), agent), 'ok');
    expect(body).toMatchObject({ class: 'undeclared_automation', smartSignals: { bot: true } });
    expect(body.suspectScore).toBeGreaterThanOrEqual(0.9);
  });

  it('200 ok: the legacy symmetric form', async () => {
    const { key } = await gpd.json<{ key: string }>(['keys', 'symmetric', KID]);
    const bundle = sealUnder(KID, Buffer.from(key, 'base64'), makePlaintext());
    await expect.poll(async () => (await post(gpd.url, bundle)).status).not.toBe(401);
    expectCore(await post(gpd.url, bundle), 'replay');
  });

  it('409 replay: another bundle with the same nonce', async () => {
    const nonce = createNonce();
    expectCore(await post(gpd.url, createBundle(acme, { nonce })), 'ok');
    expectCore(await post(gpd.url, createBundle(acme, { nonce }), { origin: ORIGIN }), 'replay');
  });

  it.each([-301_000, 301_000])('400 stale: %d ms away', async (offset) => {
    const bundle = createBundle(acme, { clientTs: Date.now() + offset });
    const { consentState } = expectCore(await post(gpd.url, bundle, { origin: ORIGIN }), 'stale');
    expect(consentState.purposes).toEqual(['device-identification']);
  });

  it('400 decrypt-failed: a bad tag, of which nothing is known', async () => {
    const { consentState } = expectCore(await post(gpd.url, badTag()), 'decrypt-failed');
    const nothing = { purposes: [], gpc: false, gpcSource: 'none', version: 0, issuedAt: 0 };
    expect(consentState).toEqual({ ...nothing, basis: 'asserted' });
  });

  it('401 unknown-key: an unknown kid on the symmetric path', async () => {
    expectCore(await post(gpd.url, stranger()), 'unknown-key');
  });

  it('gives a fresh cookie each time, whatever the browser sent', async () => {
    const inbound = 'A'.repeat(43);
    const sessions = new Set([inbound]);
    const staleBundle = createBundle(acme, { clientTs: 0 });
    for (const bundle of [createBundle(acme), staleBundle, badTag(), staleBundle])
      sessions.add(sessionOf(await post(gpd.url, bundle, { cookie: `gp_session=${inbound}` })));
    expect(sessions.size).toBe(5);
  });

  it('writes for a 200 and for nothing else', async () => {
    const usedBundle = createBundle(acme);
    const earlier = await dumpDatabase(gpd.dataDir);
    expectCore(await post(gpd.url, usedBundle), 'ok');
    const before = await dumpDatabase(gpd.dataDir);
    expect(before).not.toEqual(earlier);
    expectCore(await post(gpd.url, usedBundle), 'replay');
    expectCore(await post(gpd.url, createBundle(acme, { clientTs: 0 })), 'stale');
    expectCore(await post(gpd.url, badTag()), 'decrypt-failed');
    expectCore(await post(gpd.url, stranger()), 'unknown-key');
    expectError(await post(gpd.url, '{}'), 'malformed-sealed-bundle');
    expect(await dumpDatabase(gpd.dataDir)).toEqual(before);
  });
});

/** Contract 3.1: of two things that are wrong with a request, the cheaper refusal comes first. */
describe('the order of refusals', () => {
  const tooLarge = 'x'.repeat(32_769);
  const nobody = { purposes: ['analytics'] };

  it('size, then rate, then media type, envelope and opening', async () => {
    expectError(await post(limited.url, tooLarge), 'payload-too-large');
    expectError(await post(limited.url, '{'), 'rate-limited');
    expectError(await post(limited.url, createBundle(acme)), 'rate-limited');
    expectError(await post(gpd.url, tooLarge, { 'content-type': 'text/plain' }), 'payload-too-large');
    const bundle = { ...createBundle({ ...acme, kid: 'nobody' }), extra: 1 };
    expectError(await post(gpd.url, bundle), 'malformed-sealed-bundle');
  });

  it('opening before freshness', async () => {
    const staleText = makePlaintext({ clientTs: 0 });
    expectCore(await post(gpd.url, seal({ ...acme, kid: 'nobody' }, staleText)), 'decrypt-failed');
    expectCore(await post(gpd.url, sealUnder('nobody', Buffer.alloc(32), staleText)), 'unknown-key');
    expectCore(await post(gpd.url, seal(acme, { ...staleText, surplus: true })), 'decrypt-failed');
  });

  it('freshness before consent, and a refused nonce is not claimed', async () => {
    const nonce = createNonce();
    expectCore(await post(gpd.url, createBundle(acme, { nonce, clientTs: 0, consent: nobody })), 'stale');
    expectCore(await post(gpd.url, createBundle(acme, { nonce, clientTs: 0 }), { 'sec-gpc': '1' }), 'stale');
    expectCore(await post(gpd.url, createBundle(acme, { nonce, consent: nobody })), 'consent-missing');
    expectCore(await post(gpd.url, createBundle(acme, { nonce })), 'ok');
  });

  it('freshness and consent before replay', async () => {
    const nonce = createNonce();
    const bundle = createBundle(acme, { nonce });
    expectCore(await post(gpd.url, bundle), 'ok');
    expectCore(await post(gpd.url, createBundle(acme, { nonce, clientTs: 0 })), 'stale');
    expectCore(await post(gpd.url, bundle, { 'sec-gpc': '1' }), 'consent-missing');
    expectCore(await post(gpd.url, bundle), 'replay');
  });
});

describe('a fault', () => {
  it('is 500 unknown inside the core and 500 internal outside of it', async () => {
    const broken = await startGpd();
    const key = await addApiKey(broken);
    const bearer = { authorization: `Bearer ${key}` };
    const decision = `/v1/decisions/req_${'0'.repeat(26)}`;
    await expect.poll(async () => (await ask(broken.url, decision, { headers: bearer })).status).toBe(404);
    await execute(broken.dataDir, 'DROP TABLE decisions');
    const target = broken.targets[0]!;
    const body = expectCore(await post(broken.url, createBundle(target), { origin: ORIGIN }), 'unknown');
    const outside = await ask(broken.url, decision, { headers: bearer });
    expectError(outside, 'internal');
    for (const id of [body.requestId, String(outside.headers['x-request-id'])])
      expect(broken.logs()).toContain(id);
    // It goes on: a fault is one request's.
    expectCore(await post(broken.url, createBundle(target, { clientTs: 0 })), 'stale');
    await broken.stop();
  });
});
