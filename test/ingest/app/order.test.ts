import { afterAll, beforeAll, describe, it } from 'vitest';
import { KID } from '../../support/constants.ts';
import { expectCore, expectError, post } from '../../support/expect.ts';
import { createBundle, makePlaintext, seal, sealUnder } from '../../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../../support/server.ts';

/** Contract 3.1: of two things that are wrong with a request, the cheaper refusal comes first. */
describe('the order of refusals', () => {
  let gpd: Gpd;
  let limited: Gpd;
  let acme: SealTarget;
  const tooLarge = 'x'.repeat(32_769);
  const nobody = { purposes: ['analytics'] };

  beforeAll(async () => {
    [gpd, limited] = await Promise.all([startGpd(), startGpd({ settings: { GPD_RATE_INGEST: '1/600' } })]);
    acme = gpd.targets[0]!;
    expectCore(await post(limited.url, createBundle(limited.targets[0]!)), 'ok');
  });
  afterAll(() => Promise.all([gpd.stop(), limited.stop()]));

  it('size before rate', async () => {
    expectError(await post(limited.url, tooLarge), 'payload-too-large');
  });

  it('rate before envelope', async () => {
    expectError(await post(limited.url, '{'), 'rate-limited');
  });

  it('rate before opening', async () => {
    expectError(await post(limited.url, createBundle(acme)), 'rate-limited');
  });

  it('size before envelope and before media type', async () => {
    expectError(await post(gpd.url, tooLarge, { 'content-type': 'text/plain' }), 'payload-too-large');
  });

  it('envelope before opening', async () => {
    const bundle = { ...createBundle({ ...acme, kid: 'nobody' }), extra: 1 };
    expectError(await post(gpd.url, bundle), 'malformed-sealed-bundle');
  });

  it('opening before freshness', async () => {
    const staleText = makePlaintext({ clientTs: 0 });
    expectCore(await post(gpd.url, seal({ ...acme, kid: 'nobody' }, staleText)), 'decrypt-failed');
    expectCore(await post(gpd.url, sealUnder(KID, Buffer.alloc(32), staleText)), 'unknown-key');
    expectCore(await post(gpd.url, seal(acme, { ...staleText, surplus: true })), 'decrypt-failed');
  });

  it('freshness before consent', async () => {
    expectCore(await post(gpd.url, createBundle(acme, { clientTs: 0, consent: nobody })), 'stale');
    expectCore(await post(gpd.url, createBundle(acme, { clientTs: 0 }), { 'sec-gpc': '1' }), 'stale');
  });

  it('freshness before replay', async () => {
    const nonce = makePlaintext()['nonce'] as string;
    expectCore(await post(gpd.url, createBundle(acme, { nonce })), 'ok');
    expectCore(await post(gpd.url, createBundle(acme, { nonce, clientTs: 0 })), 'stale');
  });

  it('consent before replay', async () => {
    const bundle = createBundle(acme);
    expectCore(await post(gpd.url, bundle), 'ok');
    expectCore(await post(gpd.url, bundle, { 'sec-gpc': '1' }), 'consent-missing');
    expectCore(await post(gpd.url, bundle), 'replay');
  });

  it('a refused nonce is not claimed', async () => {
    const nonce = makePlaintext()['nonce'] as string;
    expectCore(await post(gpd.url, createBundle(acme, { nonce, consent: nobody })), 'consent-missing');
    expectCore(await post(gpd.url, createBundle(acme, { nonce, clientTs: 0 })), 'stale');
    expectCore(await post(gpd.url, createBundle(acme, { nonce })), 'ok');
  });
});
