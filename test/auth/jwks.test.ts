import { createLocalJWKSet, type JWK } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { readSigningKeys, verifyBearer } from '../../src/auth/tokens.ts';
import { createKey, publicJwk, signJws } from '../support/jws.ts';
import { answerTo, REASONS } from './support.ts';

/** The keys of a provider's JWKS that gpd accepts, and the refusal of tokens that another key signed. */

const RULES = {
  issuer: 'https://id.example',
  audience: 'gpd',
  oidc_role_claim: 'gpd_role',
  oidc_tenant_claim: 'gpd_tenant',
  oidc_visitor_claim: 'gpd_visitor',
  oidc_principal_claim: 'sub',
};
const CLAIMS = { iss: RULES.issuer, aud: RULES.audience, sub: 'user-1', exp: 2_000_000_000, gpd_role: 'dpo' };

let ec: JWK;
let rsa: JWK;
beforeAll(async () => {
  [ec, rsa] = await Promise.all([createKey('ES256'), createKey('RS256')]);
});

/** Returns the answer to a token of `signer` if the provider publishes these keys. */
function answerWith(published: readonly unknown[], signer: JWK, header = {}): ReturnType<typeof answerTo> {
  const keys = readSigningKeys({ keys: published });
  const deps = {
    rules: RULES,
    clock: () => 1_800_000_000_000,
    keys: createLocalJWKSet({ keys: [...(keys ?? [])] }),
  };
  const { alg, kid } = signer;
  const token = signJws({ alg, ...(kid === undefined ? {} : { kid }), ...header }, CLAIMS, signer);
  return answerTo((authorization) => verifyBearer(deps, authorization), `Bearer ${token}`);
}

describe('a key that is taken', () => {
  it.each([
    ['as providers publish them', {}],
    ['without use and alg', { use: undefined, alg: undefined }],
    ['with key_ops', { use: undefined, key_ops: ['verify'] }],
    ['with a certificate', { x5c: ['MIIB'], x5t: 'AAAA', 'x5t#S256': 'AAAA' }],
    ['with members of later days', { issued: 5, ext: true }],
  ])('%s', async (_name, members) => {
    for (const jwk of [ec, rsa])
      expect((await answerWith([{ ...publicJwk(jwk), ...members }], jwk)).status).toBe(200);
  });

  it.each([2048, 4096])('RSA of %d bits', async (bits) => {
    const key = await createKey('RS256', bits);
    expect((await answerWith([publicJwk(key)], key)).status).toBe(200);
  });

  it('among others that are not', async () => {
    const unusable = [
      null,
      5,
      'x',
      [],
      {},
      { kty: 'oct', k: 'AAAA' },
      { kty: 'RSA' },
      { kty: 'EC', crv: 'P-256' },
    ];
    expect((await answerWith([...unusable, publicJwk(ec), ...unusable], ec)).status).toBe(200);
  });
});

describe('a key that is passed over', () => {
  it.each([
    ['ES384', undefined, REASONS.algorithm],
    ['ES512', undefined, REASONS.algorithm],
    ['EdDSA', undefined, REASONS.algorithm],
    ['RS256', 512, REASONS.signature],
    ['RS256', 2047, REASONS.signature],
  ])('of %s, with %s bits', async (alg, bits, reason) => {
    const key = { ...(await createKey(alg, bits)), kid: 'k' };
    const published = [publicJwk(key)];
    expect((await answerWith(published, key)).details[0]).toMatch(reason);
    const name = alg === 'RS256' ? alg : 'ES256';
    expect((await answerWith(published, key, { alg: name })).details[0]).toMatch(REASONS.signature);
    expect(readSigningKeys({ keys: published })).toEqual([]);
  });

  it.each([
    ['use enc', { use: 'enc' }],
    ['use of another type', { use: ['sig'] }],
    ['key_ops to encrypt', { key_ops: ['encrypt', 'wrapKey'] }],
    ['key_ops to sign', { key_ops: ['sign'] }],
    ['key_ops of another type', { key_ops: 'verify' }],
    ['alg of another kind', { alg: 'RSA-OAEP' }],
    ['alg with another hash', { alg: 'RS512' }],
    ['alg of another type', { alg: 1 }],
    ['kid of another type', { kid: 1 }],
    ['kty of another kind', { kty: 'oct' }],
    ['kty in lower case', { kty: 'rsa' }],
    ['its private part', { d: 'AAAA' }],
  ])('with %s', async (_name, members) => {
    for (const jwk of [ec, rsa]) {
      const published = { ...publicJwk(jwk), ...members };
      expect(readSigningKeys({ keys: [published] })).toEqual([]);
      expect((await answerWith([published], jwk)).status).toBe(401);
    }
  });

  it('off the curve, of another curve by name, or at infinity', () => {
    const { kty, x = '', y = '' } = ec;
    const zero = Buffer.alloc(32).toString('base64url');
    const off = Buffer.from(y, 'base64url').reverse().toString('base64url');
    expect(readSigningKeys({ keys: [{ kty, crv: 'P-256', x: zero, y: zero }] })).toEqual([]);
    for (const other of [off, zero, 'AA', ''])
      expect(readSigningKeys({ keys: [{ kty, crv: 'P-256', x, y: other }] })).toEqual([]);
    for (const crv of ['P-384', 'secp256k1', 'p-256', undefined])
      expect(readSigningKeys({ keys: [{ kty, crv, x, y }] })).toEqual([]);
  });

  it('with an exponent of 1, by which everybody could sign, an even one, or a huge modulus', () => {
    const { kty, n } = rsa;
    for (const e of ['AQ', 'AA', 'Ag', 'AQAA', ''])
      expect(readSigningKeys({ keys: [{ kty, n, e }] }), e).toEqual([]);
    // A larger modulus would make each verification a burden.
    const huge = Buffer.alloc(1025, 0xff).toString('base64url');
    expect(readSigningKeys({ keys: [{ kty, n: huge, e: 'AQAB' }] })).toEqual([]);
  });
});

describe('which of several', () => {
  it('by kid, among keys of the algorithm alone', async () => {
    const one = { ...ec, kid: 'a' };
    const two = { ...(await createKey('ES256')), kid: 'b' };
    const published = [one, two, { ...rsa, kid: 'a' }].map(publicJwk);
    for (const key of [one, two, { ...rsa, kid: 'a' }])
      expect((await answerWith(published, key)).status).toBe(200);
    expect((await answerWith(published, { ...one, kid: 'b' })).status).toBe(401);
  });

  it('without a kid the only one, and none when there are several (OIDC Core 10.1)', async () => {
    const other = await createKey('ES256');
    expect((await answerWith([publicJwk(ec), publicJwk(rsa)], ec)).status).toBe(200);
    for (const key of [ec, other])
      expect((await answerWith([publicJwk(ec), publicJwk(other)], key)).status).toBe(401);
  });

  it('a kid in the token is not met by a key without one', async () => {
    expect((await answerWith([publicJwk(ec)], { ...ec, kid: 'a' })).status).toBe(401);
  });
});

it('two keys of one kid are both tried, and neither makes a stranger’s signature good', async () => {
  const createNamed = async () => ({ ...(await createKey('ES256')), kid: 'k' });
  const [first, second, stranger] = [await createNamed(), await createNamed(), await createNamed()];
  const published = [first, second].map(publicJwk);
  for (const key of [first, second]) expect((await answerWith(published, key)).status).toBe(200);
  const answer = await answerWith(published, stranger);
  expect(answer).toMatchObject({ status: 401 });
  expect(answer.details[0]).toMatch(REASONS.signature);
});
