import {
  createHmac,
  createPrivateKey,
  constants as crypto,
  generateKeyPair,
  type KeyObject,
  sign,
} from 'node:crypto';
import { promisify } from 'node:util';
import type { JWK } from 'jose';

/** Compact JWS made by hand, because a library refuses to sign most of what an attacker sends. */

/** JSON, or the very bytes. */
export type Part = object | string | Uint8Array;

const generate = promisify(generateKeyPair) as (
  type: string,
  options: Readonly<Record<string, unknown>>,
) => Promise<{ privateKey: KeyObject }>;

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

/** A private JWK, to be used with this algorithm alone. */
export async function createKey(alg: string, modulusLength = 2048): Promise<JWK> {
  const namedCurve = CURVES[alg];
  const type = namedCurve ? 'ec' : alg === 'EdDSA' ? 'ed25519' : 'rsa';
  const { privateKey } = await generate(type, { namedCurve, modulusLength });
  return { ...(privateKey.export({ format: 'jwk' }) as JWK), alg, use: 'sig' };
}

export function publicJwk({ kty, crv, x, y, n, e, kid, alg, use }: JWK): JWK {
  const members = Object.entries({ kty, crv, x, y, n, e, kid, alg, use });
  return Object.fromEntries(members.filter(([, value]) => value !== undefined)) as JWK;
}

export function encodePart(part: Part): string {
  const bytes = part instanceof Uint8Array || typeof part === 'string' ? part : JSON.stringify(part);
  return Buffer.from(bytes as string).toString('base64url');
}

/** By the algorithm that the JWK is for, whatever a header says. */
function signBytes(input: string, { alg = '', ...jwk }: JWK): Buffer {
  const key = createPrivateKey({ key: jwk as Record<string, unknown>, format: 'jwk' });
  if (alg === 'EdDSA') return sign(null, Buffer.from(input), key);
  const hash = `sha${alg.slice(2)}`;
  const pss = { padding: crypto.RSA_PKCS1_PSS_PADDING, saltLength: crypto.RSA_PSS_SALTLEN_DIGEST };
  const options = alg.startsWith('PS') ? pss : { dsaEncoding: 'ieee-p1363' as const };
  return sign(hash, Buffer.from(input), { key, ...options });
}

export function signJws(header: Part, payload: Part, jwk: JWK): string {
  const input = `${encodePart(header)}.${encodePart(payload)}`;
  return `${input}.${signBytes(input, jwk).toString('base64url')}`;
}

/** HS256 and its kin under any bytes, as one who takes a public key for a secret would make it. */
export function macJws(header: Part, payload: Part, secret: string | Uint8Array, hash = 'sha256'): string {
  const input = `${encodePart(header)}.${encodePart(payload)}`;
  return `${input}.${createHmac(hash, secret).update(input).digest('base64url')}`;
}
