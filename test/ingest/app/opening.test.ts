import { createECDH } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { KID, ORIGIN } from '../../support/constants.ts';
import { expectCore, post, SEEN_WITHIN } from '../../support/expect.ts';
import { browserHeaders } from '../../support/samples.ts';
import { createBundle, createNonce, flipByte, makePlaintext, seal, sealUnder } from '../../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../../support/server.ts';

let gpd: Gpd;
let acme: SealTarget;
let other: SealTarget;
let sharedKey: Buffer;
beforeAll(async () => {
  const tenants = [
    { kid: KID, origins: [ORIGIN] },
    { kid: 'other', origins: [] },
  ];
  gpd = await startGpd({ tenants, settings: { GPD_MAX_CLOCK_SKEW: '20' } });
  [acme, other] = [gpd.targets[0]!, gpd.targets[1]!];
  const { key } = await gpd.json<{ key: string }>(['keys', 'symmetric', KID]);
  sharedKey = Buffer.from(key, 'base64');
  const ask = () => post(gpd.url, sealUnder(KID, sharedKey, '{}'));
  await vi.waitFor(async () => expectCore(await ask(), 'decrypt-failed'), SEEN_WITHIN);
});
afterAll(() => gpd.stop());

/** A point in the form that OpenSSL also takes: 0x06 or 0x07 and both coordinates. */
function hybrid(epk: string): string {
  const point = Buffer.from(epk, 'base64');
  point[0] = 0x06 | ((point[64] ?? 0) & 1);
  return point.toString('base64');
}

const withTag = (length: number) =>
  rewritten('ct', (ct) => {
    const sealed = Buffer.from(ct, 'base64');
    return sealed.subarray(0, sealed.length - 16 + length).toString('base64');
  });

function without(field: string): Record<string, unknown> {
  const plaintext = makePlaintext();
  delete plaintext[field];
  return plaintext;
}

function withReceipt(receipt: Record<string, unknown>): Record<string, unknown> {
  return { ...makePlaintext(), consent: { ...(makePlaintext()['consent'] as object), ...receipt } };
}

/** One field of a good bundle changed after it was sealed. */
function rewritten(field: 'epk' | 'ct', change: (value: string) => string) {
  const bundle = createBundle(acme);
  return { ...bundle, [field]: change(bundle[field] ?? '') };
}
const hex = (text: string): string => Buffer.from(text, 'hex').toString('base64');
const DEEP_SCREEN = `"deep":${'['.repeat(40)}${']'.repeat(40)},"screen":`;

const stranger = createECDH('prime256v1').generateKeys();

const unopened: readonly (readonly [string, () => unknown])[] = [
  ['another key', () => seal({ kid: KID, publicKey: stranger }, makePlaintext())],
  ['the key of another tenant', () => seal({ ...other, kid: KID }, makePlaintext())],
  ['the kid of another tenant', () => ({ ...createBundle(acme), kid: 'other' })],
  ['an unknown kid', () => createBundle({ ...acme, kid: 'nobody' })],
  ['a changed iv', () => ({ ...createBundle(acme), iv: createBundle(acme).iv })],
  ['its own point in hybrid form', () => rewritten('epk', hybrid)],
  ['a point off the curve', () => rewritten('epk', (epk) => flipByte(epk, -1))],
  ['the point at zero', () => rewritten('epk', () => hex(`04${'00'.repeat(64)}`))],
  ['a flipped bit in the ciphertext', () => rewritten('ct', (ct) => flipByte(ct, 0))],
  ...[0, 4, 15].map((length) => [`a tag of ${length} bytes`, () => withTag(length)] as const),
  [
    'a symmetric bundle with an epk beside it',
    () => ({ ...sealUnder(KID, sharedKey, makePlaintext()), epk: createBundle(acme).epk }),
  ],
  ['an asymmetric bundle without its epk', () => ({ ...createBundle(acme), epk: undefined })],
  ['an empty plaintext', () => seal(acme, '')],
  ['no JSON', () => seal(acme, 'hello')],
  [
    'bad UTF-8',
    () => seal(acme, Buffer.from(JSON.stringify(withReceipt({ principalId: '\u00ff' })), 'latin1')),
  ],
  ['null', () => seal(acme, null)],
  ['an unknown field', () => seal(acme, { ...makePlaintext(), surplus: 1 })],
  ['a duplicate field', () => seal(acme, JSON.stringify(makePlaintext()).replace('{', '{"v":1,'))],
  ['another version', () => seal(acme, { ...makePlaintext(), v: 2 })],
  ...['v', 'nonce', 'clientTs', 'consent', 'signals'].map(
    (field) => [`no ${field}`, () => seal(acme, without(field))] as const,
  ),
  ...[15, 65].map(
    (bytes) =>
      [`a nonce of ${bytes} bytes`, () => createBundle(acme, { nonce: createNonce(bytes) })] as const,
  ),
  ['a nonce in base64', () => createBundle(acme, { nonce: Buffer.alloc(17, 0xfb).toString('base64') })],
  ['a nonce with loose bits', () => createBundle(acme, { nonce: `${createNonce().slice(0, 21)}B` })],
  ['a clientTs with a fraction', () => createBundle(acme, { clientTs: Date.now() + 0.5 })],
  ['purposes that are a string', () => seal(acme, withReceipt({ purposes: 'device-identification' }))],
  ['a version of consent with a fraction', () => seal(acme, withReceipt({ version: 1.5 }))],
  ['a proof that is none', () => seal(acme, withReceipt({ proof: { seq: -1, hash: 'x' } }))],
  ['an upper-case hash', () => seal(acme, withReceipt({ proof: { seq: 1, hash: 'A'.repeat(64) } }))],
  ['more purposes than anybody has', () => seal(acme, withReceipt({ purposes: Array(101).fill('p') }))],
  ['a purpose of 65 characters', () => seal(acme, withReceipt({ purposes: ['p'.repeat(65)] }))],
  ['a version that no integer column holds', () => seal(acme, withReceipt({ version: 2_147_483_648 }))],
  ['a time past the end of dates', () => createBundle(acme, { clientTs: 8_640_000_000_000_001 })],
  ['a negative time', () => createBundle(acme, { clientTs: -1 })],
  ['an empty principal', () => seal(acme, withReceipt({ principalId: '' }))],
  ['signals 40 deep', () => seal(acme, JSON.stringify(makePlaintext()).replace('"screen":', DEEP_SCREEN))],
];

describe('a bundle that does not open', () => {
  it.each(unopened)('is decrypt-failed like a bad tag: %s', async (_name, make) => {
    const bundle = make() as { kid: string };
    // The kid decides which pages may read the answer, so both bundles name the same tenant.
    const bad = createBundle(bundle.kid === other.kid ? other : acme);
    const reference = await post(gpd.url, { ...bad, ct: flipByte(bad.ct, -1) }, { origin: ORIGIN });
    const reply = await post(gpd.url, bundle, { origin: ORIGIN });
    const { requestId: _id, ...body } = expectCore(reply, 'decrypt-failed');
    const { requestId: _other, ...expected } = expectCore(reference, 'decrypt-failed');
    expect(body).toEqual(expected);
    const volatile = ['date', 'x-request-id', 'set-cookie'];
    const visible = (headers: object) => Object.entries(headers).filter(([name]) => !volatile.includes(name));
    expect(visible(reply.headers)).toEqual(visible(reference.headers));
  });

  it('is unknown-key where a symmetric bundle names a tenant without a symmetric key, or none', async () => {
    for (const kid of ['other', 'nobody']) {
      expectCore(await post(gpd.url, sealUnder(kid, sharedKey, makePlaintext())), 'unknown-key');
    }
  });
});

describe('a bundle that opens', () => {
  it.each([16, 64])('may have a nonce of %i bytes', async (bytes) => {
    expectCore(await post(gpd.url, createBundle(acme, { nonce: createNonce(bytes) })), 'ok');
  });

  it('may carry proof, principal and unknown fields inside consent and signals', async () => {
    const proof = { seq: 41, hash: 'a'.repeat(64) };
    const receipt = { proof, principalId: 'u-1' };
    expectCore(await post(gpd.url, seal(acme, withReceipt(receipt))), 'ok');
    const signals = { ...(makePlaintext()['signals'] as object), later: { any: ['thing', null] } };
    expectCore(await post(gpd.url, createBundle(acme, { signals })), 'ok');
  });

  it('is tied to its tenant: one nonce serves two of them', async () => {
    const nonce = createNonce();
    expectCore(await post(gpd.url, createBundle(acme, { nonce })), 'ok');
    expectCore(await post(gpd.url, createBundle(other, { nonce })), 'ok');
    expectCore(await post(gpd.url, sealUnder(KID, sharedKey, makePlaintext({ nonce }))), 'replay');
  });
});

describe('the clock skew of GPD_MAX_CLOCK_SKEW=20', () => {
  it.each([
    [-18_000, 'ok'],
    [-20_500, 'stale'],
    [19_500, 'ok'],
    [22_500, 'stale'],
  ] as const)('%i ms: %s', async (offset, reason) => {
    const bundle = createBundle(acme, { clientTs: Date.now() + offset });
    expectCore(await post(gpd.url, bundle, browserHeaders(ORIGIN)), reason);
  });
});
