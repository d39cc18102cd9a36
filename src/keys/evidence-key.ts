import { createECDH, createHmac } from 'node:crypto';
import { sha256, sha256Text } from '../lib/crypto.ts';
import { deriveP256Key, ORDER } from './state-key.ts';

/**
 * The tenant's export key, which seals files of evidence (contract-2 section 23, ADR 0112). Its signatures
 * are deterministic (RFC 6979), so that the same file is sealed with the same bytes; `node:crypto` draws a
 * random number for each.
 */

const BYTES = 32;

const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
const bytesOf = (value: bigint): Buffer => Buffer.from(value.toString(16).padStart(2 * BYTES, '0'), 'hex');

/** The inverse modulo the prime order, by Fermat's little theorem: the exponent is no secret. */
function invert(value: bigint): bigint {
  let [result, base] = [1n, value];
  for (let exponent = ORDER - 2n; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * base) % ORDER;
    base = (base * base) % ORDER;
  }
  return result;
}

/** Yields the nonces of RFC 6979 section 3.2: the second is only used if the first gives no signature. */
function* noncesOf(privateKey: Buffer, digest: Uint8Array): Generator<bigint> {
  const hmac = (key: Uint8Array, ...parts: readonly Uint8Array[]): Buffer =>
    createHmac('sha256', key).update(Buffer.concat(parts)).digest();
  const seed = Buffer.concat([privateKey, bytesOf(numberOf(digest) % ORDER)]);
  let key: Buffer = Buffer.alloc(BYTES);
  let value: Buffer = Buffer.alloc(BYTES, 1);
  for (const mark of [0, 1]) {
    key = hmac(key, value, Buffer.from([mark]), seed);
    value = hmac(key, value);
  }
  for (;;) {
    value = hmac(key, value);
    const nonce = numberOf(value);
    if (nonce > 0n && nonce < ORDER) yield nonce;
    key = hmac(key, value, Buffer.from([0]));
    value = hmac(key, value);
  }
}

/** Signs with P-256 and SHA-256. @param d the private scalar @returns r || s (RFC 7518 section 3.4) */
export function signEs256(d: Uint8Array, message: Uint8Array): Buffer {
  const digest = sha256(message);
  const secret = Buffer.from(d);
  for (const nonce of noncesOf(secret, digest)) {
    const pair = createECDH('prime256v1');
    pair.setPrivateKey(bytesOf(nonce));
    const r = numberOf(pair.getPublicKey().subarray(1, 1 + BYTES)) % ORDER;
    const s = (invert(nonce) * ((numberOf(digest) + r * numberOf(secret)) % ORDER)) % ORDER;
    if (r !== 0n && s !== 0n) return Buffer.concat([bytesOf(r), bytesOf(s)]);
  }
  throw new Error('unreachable: the nonces never end');
}

export type EvidenceKey = ReturnType<typeof createEvidenceKey>;

/** @param secret of the tenant */
export function createEvidenceKey(secret: Uint8Array) {
  const { d, kty, crv, x, y } = deriveP256Key(secret, 'gpd/evidence-key/v1');
  // The members in the order of RFC 7638 section 3.
  const jwk = { crv, kty, x, y };
  const thumbprint = sha256Text(JSON.stringify(jwk));
  const header = { alg: 'ES256', jwk, kid: thumbprint, typ: 'gpd-evidence+jws' };
  const encode = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
  return {
    thumbprint,
    jwk,
    /** A compact JWS over these bytes, which are inside. */
    sign(payload: Uint8Array): string {
      const signed = `${encode(Buffer.from(JSON.stringify(header)))}.${encode(payload)}`;
      return `${signed}.${encode(signEs256(Buffer.from(d, 'base64url'), Buffer.from(signed)))}`;
    },
  };
}
