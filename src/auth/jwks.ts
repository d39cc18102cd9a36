import { createPublicKey, type KeyObject } from 'node:crypto';
import type { JWK } from 'jose';
import { z } from 'zod';
import { orElse } from '../lib/or-else.ts';

/** The signing keys in an identity provider's JWKS (RFC 7517) that this server takes: P-256 and RSA from 2048 bits. */

export const SIGNING_ALGORITHMS = ['ES256', 'RS256'] as const;
const MAX_KEYS = 100;
const MIN_RSA_BITS = 2048;
/** A larger modulus makes each verification a burden that a stranger can order. */
const MAX_RSA_BITS = 8192;

const base64url = z.string().regex(/^[A-Za-z0-9_-]+$/);
const common = {
  kid: z.string().optional(),
  use: z.literal('sig').optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify'))
    .optional(),
  // A private key that was published is anybody's.
  d: z.undefined().optional(),
};
const jwkSchema = z.discriminatedUnion('kty', [
  z.object({
    ...common,
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    alg: z.literal('ES256').optional(),
    x: base64url,
    y: base64url,
  }),
  z.object({
    ...common,
    kty: z.literal('RSA'),
    alg: z.literal('RS256').optional(),
    n: base64url,
    e: base64url,
  }),
]);
const jwksSchema = z.object({ keys: z.array(z.unknown()).max(MAX_KEYS) });

type Jwk = z.output<typeof jwkSchema>;

/** RFC 8017 section 3.1: an exponent of 1 would let anyone sign. */
function isSoundRsa(key: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  const sized = modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS;
  return sized && publicExponent >= 3n && publicExponent % 2n === 1n;
}

/** What jose imports and picks by `kid` and `alg`: a key never serves another algorithm. Null: nobody may sign by it. */
function publicKey(jwk: Jwk): JWK | null {
  const { kty, kid } = jwk;
  const key = kty === 'EC' ? { kty, crv: jwk.crv, x: jwk.x, y: jwk.y } : { kty, n: jwk.n, e: jwk.e };
  const imported = orElse(() => createPublicKey({ key, format: 'jwk' }), null);
  if (!imported || (kty === 'RSA' && !isSoundRsa(imported))) return null;
  return { ...key, alg: kty === 'EC' ? 'ES256' : 'RS256', ...(kid === undefined ? {} : { kid }) };
}

/** The keys that can be used; others are passed over. Null: not a JWKS, or too many keys. */
export function readSigningKeys(document: unknown): readonly JWK[] | null {
  const parsed = jwksSchema.safeParse(document);
  if (!parsed.success) return null;
  return parsed.data.keys.flatMap((candidate) => {
    const jwk = jwkSchema.safeParse(candidate);
    return (jwk.success ? publicKey(jwk.data) : null) ?? [];
  });
}
