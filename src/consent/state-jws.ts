import { compactVerify, importJWK, SignJWT } from 'jose';
import { z } from 'zod';
import { deriveStateKey } from '../keys/state-key.ts';
import { sha256Text } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';
import type { StateKey } from '../schema/consent.ts';

/** Signs and verifies the state of a principal: a compact JWS, ES256 (contract-2 section 20, ADR 0099). */

const claimsSchema = z.object({
  iss: z.string(),
  /** The tenant. */
  kid: z.string(),
  /** Keyed reference of the principal. */
  sub: z.string(),
  /** Seconds since the epoch. */
  iat: z.int(),
  exp: z.int(),
  /** Ids of the granted purposes. */
  p: z.array(z.string()),
  /** The newest entry of the principal's state; 0 without any. */
  seq: z.int(),
});
type StateClaims = z.infer<typeof claimsSchema>;

const ALG = 'ES256';

export function createStateSigner(serverSecret: Uint8Array) {
  const { d, ...publicJwk } = deriveStateKey(serverSecret);
  const { crv, kty, x, y } = publicJwk;
  // The members in the order of RFC 7638 section 3.
  const kid = sha256Text(JSON.stringify({ crv, kty, x, y }));
  const key: StateKey = { ...publicJwk, kid, alg: ALG, use: 'sig' };
  const privateKey = importJWK({ ...publicJwk, d }, ALG);
  const publicKey = importJWK(publicJwk, ALG);
  return {
    key,
    sign: async (claims: StateClaims): Promise<string> =>
      new SignJWT(claims).setProtectedHeader({ alg: ALG, kid, typ: 'JWT' }).sign(await privateKey),
    /** @returns the claims of a state of any age; null if this installation did not sign it */
    async verify(state: string): Promise<StateClaims | null> {
      const verified = await compactVerify(state, await publicKey, { algorithms: [ALG] }).catch(() => null);
      const json =
        verified && tryOr(() => JSON.parse(Buffer.from(verified.payload).toString()) as unknown, null);
      return claimsSchema.safeParse(json).data ?? null;
    },
  };
}
