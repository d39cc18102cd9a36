import { createECDH } from 'node:crypto';
import { decodeBase64, decryptGcm } from '../lib/crypto.ts';
import type { SealedBundle } from '../schema/bundle.ts';
import { ASYMMETRIC_ALG, IV_BYTES, POINT_BYTES, SYMMETRIC_ALG, UNCOMPRESSED } from './constants.ts';
import { additionalData, keyInfo, type SealContext } from './context.ts';
import { deriveKey } from './derive.ts';

/** Decrypts a bundle that is sealed to one key; null for each cause of failure. */
export type Opener = (bundle: SealedBundle) => Buffer | null;

const EMPTY = new Uint8Array(0);

function decrypt(key: Buffer, context: SealContext, iv: Buffer, sealed: Buffer): Buffer | null {
  return iv.length === IV_BYTES ? decryptGcm(key, iv, additionalData(context, iv), sealed) : null;
}

/**
 * @param privateKey the 32-byte P-256 scalar of one generation
 * @returns an opener that reuses one ECDH object: making one per bundle would double the cost
 */
export function createOpener(privateKey: Uint8Array): Opener {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(privateKey);
  const recipient = ecdh.getPublicKey();
  return (bundle) => {
    const epk = bundle.epk === undefined ? null : decodeBase64(bundle.epk);
    const iv = decodeBase64(bundle.iv);
    const sealed = decodeBase64(bundle.ct);
    if (!epk || !iv || !sealed || epk.length !== POINT_BYTES || epk[0] !== UNCOMPRESSED) return null;
    let shared: Buffer;
    try {
      shared = ecdh.computeSecret(epk);
    } catch {
      return null; // not on the curve
    }
    const context = { alg: ASYMMETRIC_ALG, kid: bundle.kid, epk, recipient };
    return decrypt(deriveKey(shared, keyInfo(context)), context, iv, sealed);
  };
}

/** @param sharedKey the tenant's 32-byte symmetric key (the legacy form, without `epk`) */
export function createSymmetricOpener(sharedKey: Uint8Array): Opener {
  return (bundle) => {
    const iv = decodeBase64(bundle.iv);
    const sealed = decodeBase64(bundle.ct);
    if (bundle.epk !== undefined || !iv || !sealed) return null;
    const context = { alg: SYMMETRIC_ALG, kid: bundle.kid, epk: EMPTY, recipient: EMPTY };
    return decrypt(deriveKey(sharedKey, keyInfo(context)), context, iv, sealed);
  };
}
