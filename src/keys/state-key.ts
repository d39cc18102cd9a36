import { createECDH, hkdfSync } from 'node:crypto';

/**
 * The P-256 key that signs the states of principals (ADR 0099). All nodes derive the same one from the secret
 * of the installation, so that no table holds it.
 */

/** The order of the group (SP 800-186 section 3.2.1.3). */
export const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
/** FIPS 186-5 appendix A.2.1 needs 64 bits more than the order has, so that the remainder has no bias. */
const SEED_BYTES = 48;
const COORDINATE_BYTES = 32;

/** @param info names the use @returns a private JWK */
export function deriveP256Key(secret: Uint8Array, info: string) {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', info, SEED_BYTES));
  const scalar = (BigInt(`0x${seed.toString('hex')}`) % (ORDER - 1n)) + 1n;
  const bytes = Buffer.from(scalar.toString(16).padStart(2 * COORDINATE_BYTES, '0'), 'hex');
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(bytes);
  // The uncompressed point: a byte 4, then both coordinates (SEC 1 section 2.3.3).
  const point = pair.getPublicKey();
  return {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 1 + COORDINATE_BYTES).toString('base64url'),
    y: point.subarray(1 + COORDINATE_BYTES).toString('base64url'),
    d: bytes.toString('base64url'),
  } as const;
}

export const deriveStateKey = (serverSecret: Uint8Array) =>
  deriveP256Key(serverSecret, 'gpd/consent-state/v1');
