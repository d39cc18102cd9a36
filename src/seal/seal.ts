import { createECDH } from 'node:crypto';
import type { Random } from '../lib/crypto.ts';
import { encryptGcm } from '../lib/crypto.ts';
import type { SealedBundle } from '../schema/bundle.ts';
import { ASYMMETRIC_ALG, IV_BYTES, KEY_BYTES, SYMMETRIC_ALG } from './constants.ts';
import { additionalData, keyInfo, type SealContext } from './context.ts';
import { deriveKey } from './derive.ts';

/** Seals a plaintext as the browser does; `gpd seal` and the tests call it. */

function encrypt(secret: Uint8Array, context: SealContext, plaintext: Uint8Array, random: Random) {
  const iv = random(IV_BYTES);
  const ct = encryptGcm(deriveKey(secret, keyInfo(context)), iv, additionalData(context, iv), plaintext);
  return { iv: iv.toString('base64'), ct: ct.toString('base64') };
}

/**
 * Seals to a tenant's public key.
 * @param recipient 65 bytes, uncompressed
 * @param random 32 bytes for the ephemeral key, then 12 for the IV
 * @throws {Error} when `recipient` is not a point of P-256
 */
export function sealTo(
  kid: string,
  recipient: Uint8Array,
  plaintext: Uint8Array,
  random: Random,
): SealedBundle {
  const ephemeral = createECDH('prime256v1');
  ephemeral.setPrivateKey(random(KEY_BYTES));
  const epk = ephemeral.getPublicKey();
  const context = { alg: ASYMMETRIC_ALG, kid, epk, recipient };
  const sealed = encrypt(ephemeral.computeSecret(recipient), context, plaintext, random);
  return { kid, epk: epk.toString('base64'), ...sealed };
}

/** Seals under the tenant's 32-byte symmetric key (legacy). */
export function sealSymmetric(
  kid: string,
  sharedKey: Uint8Array,
  plaintext: Uint8Array,
  random: Random,
): SealedBundle {
  const empty = new Uint8Array(0);
  const context = { alg: SYMMETRIC_ALG, kid, epk: empty, recipient: empty };
  return { kid, ...encrypt(sharedKey, context, plaintext, random) };
}
