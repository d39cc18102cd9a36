import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addApiKey } from '../../support/api-key.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { dumpDatabase, execute } from '../../support/database.ts';
import { expectCore, expectError, INGEST, post, sessionOf } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { headlessChrome } from '../../support/samples.ts';
import { createBundle, flipByte, makePlaintext, seal, sealUnder } from '../../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../../support/server.ts';

/** Table E1 of the interface, row by row. */
describe('ingest outcomes', () => {
  let gpd: Gpd;
  let acme: SealTarget;
  beforeAll(async () => {
    gpd = await startGpd();
    acme = gpd.targets[0]!;
  });
  afterAll(() => gpd.stop());

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
    expect(body.class).toBe('undeclared_automation');
    expect(body.smartSignals.bot).toBe(true);
    expect(body.suspectScore).toBeGreaterThanOrEqual(0.9);
  });

  it('200 ok: the legacy symmetric form', async () => {
    const { key } = await gpd.json<{ key: string }>(['keys', 'symmetric', KID]);
    const bundle = sealUnder(KID, Buffer.from(key, 'base64'), makePlaintext());
    await expect.poll(async () => (await post(gpd.url, bundle)).status).not.toBe(401);
    expectCore(await post(gpd.url, bundle), 'replay');
  });

  it('451 consent-missing', async () => {
    const body = expectCore(
      await post(gpd.url, createBundle(acme, { consent: { purposes: [] } })),
      'consent-missing',
    );
    expect(body.consentState).toMatchObject({ purposes: [], gpc: false, gpcSource: 'none', version: 3 });
  });

  it('409 replay', async () => {
    const bundle = createBundle(acme);
    expectCore(await post(gpd.url, bundle), 'ok');
    expectCore(await post(gpd.url, bundle, { origin: ORIGIN }), 'replay');
  });

  it('409 replay: another bundle with the same nonce', async () => {
    const first = makePlaintext();
    expectCore(await post(gpd.url, seal(acme, first)), 'ok');
    const second = makePlaintext({ nonce: String(first['nonce']) });
    expectCore(await post(gpd.url, seal(acme, second)), 'replay');
  });

  it.each([
    ['old', -301_000],
    ['future-dated', 301_000],
  ])('400 stale: %s', async (_name, offset) => {
    const bundle = createBundle(acme, { clientTs: Date.now() + offset });
    expectCore(await post(gpd.url, bundle, { origin: ORIGIN }), 'stale');
  });

  it('400 decrypt-failed: a bad tag', async () => {
    const bundle = createBundle(acme);
    const reply = await post(gpd.url, { ...bundle, ct: flipByte(bundle.ct, -1) });
    const { consentState } = expectCore(reply, 'decrypt-failed');
    const nothing = {
      purposes: [],
      gpc: false,
      gpcSource: 'none',
      version: 0,
      issuedAt: 0,
      basis: 'asserted',
    };
    expect(consentState).toEqual(nothing);
  });

  it('400 decrypt-failed: no opener for an unknown kid', async () => {
    const reply = await post(gpd.url, createBundle({ ...acme, kid: 'nobody' }));
    expectCore(reply, 'decrypt-failed');
  });

  it('401 unknown-key: an unknown kid on the symmetric path', async () => {
    const reply = await post(gpd.url, sealUnder('nobody', Buffer.alloc(32, 7), makePlaintext()));
    expectCore(reply, 'unknown-key');
  });

  it('400 malformed-sealed-bundle', async () => {
    expectError(await post(gpd.url, { kid: KID }), 'malformed-sealed-bundle');
  });

  it('413 payload-too-large', async () => {
    expectError(await post(gpd.url, 'x'.repeat(32_769)), 'payload-too-large');
  });

  it('gives a fresh cookie each time, whatever the browser sent', async () => {
    const inbound = 'A'.repeat(43);
    const sessions = new Set([inbound]);
    const staleBundle = createBundle(acme, { clientTs: 0 });
    for (const bundle of [
      createBundle(acme),
      staleBundle,
      createBundle({ ...acme, kid: 'nobody' }),
      staleBundle,
    ]) {
      sessions.add(sessionOf(await post(gpd.url, bundle, { cookie: `gp_session=${inbound}` })));
    }
    expect(sessions.size).toBe(5);
  });

  it('405 for another method', async () => {
    const reply = await ask(gpd.url, INGEST);
    expectError(reply, 'method-not-allowed');
    expect(reply.headers['allow']?.split(/,\s*/).sort()).toEqual(['OPTIONS', 'POST']);
  });

  it('writes for a 200 and for nothing else', async () => {
    const usedBundle = createBundle(acme);
    const earlier = await dumpDatabase(gpd.dataDir);
    expectCore(await post(gpd.url, usedBundle), 'ok');
    const before = await dumpDatabase(gpd.dataDir);
    expect(before).not.toEqual(earlier);
    expectCore(await post(gpd.url, usedBundle), 'replay');
    expectCore(await post(gpd.url, createBundle(acme, { clientTs: 0 })), 'stale');
    expectCore(await post(gpd.url, { ...usedBundle, ct: flipByte(usedBundle.ct, 0) }), 'decrypt-failed');
    expectCore(await post(gpd.url, sealUnder('nobody', Buffer.alloc(32), makePlaintext())), 'unknown-key');
    expectError(await post(gpd.url, '{}'), 'malformed-sealed-bundle');
    expect(await dumpDatabase(gpd.dataDir)).toEqual(before);
  });
});

describe('a fault', () => {
  it('is 500 unknown inside the core and 500 internal outside of it', async () => {
    const gpd = await startGpd();
    const key = await addApiKey(gpd);
    const bearer = { authorization: `Bearer ${key}` };
    const decision = `/v1/decisions/req_${'0'.repeat(26)}`;
    await expect.poll(async () => (await ask(gpd.url, decision, { headers: bearer })).status).toBe(404);
    await execute(gpd.dataDir, 'DROP TABLE decisions');
    const target = gpd.targets[0]!;
    const body = expectCore(await post(gpd.url, createBundle(target), { origin: ORIGIN }), 'unknown');
    const outside = await ask(gpd.url, decision, { headers: bearer });
    expectError(outside, 'internal');
    for (const id of [body.requestId, String(outside.headers['x-request-id'])])
      expect(gpd.logs()).toContain(id);
    // It goes on: a fault is one request's.
    expectCore(await post(gpd.url, createBundle(target, { clientTs: 0 })), 'stale');
    await gpd.stop();
  });
});
