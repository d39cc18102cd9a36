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

/** Builds compact JWS by hand, because libraries refuse to sign most of the tokens that an attacker sends. */

/** An object is encoded as JSON; texts and bytes are used unchanged. */
export type Part = object | string | Uint8Array;

const generate = promisify(generateKeyPair) as (
  type: string,
  options: Readonly<Record<string, unknown>>,
) => Promise<{ privateKey: KeyObject }>;

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

/** @returns a private JWK that is only used with this algorithm */
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

/** Uses the algorithm of the JWK, whatever the header of the token says. */
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

/** Signs with HS256 or a similar algorithm. An attacker uses a public key as the secret. */
export function macJws(header: Part, payload: Part, secret: string | Uint8Array, hash = 'sha256'): string {
  const input = `${encodePart(header)}.${encodePart(payload)}`;
  return `${input}.${createHmac(hash, secret).update(input).digest('base64url')}`;
}
