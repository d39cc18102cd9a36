import { fromBase64, randomBytes, toBase64, toBase64Url, toJson } from '../browser/encoding.ts';
import { ASYMMETRIC_ALG, IV_BYTES, KEY_BYTES, SEAL_VERSION, TAG_BYTES } from '../seal/constants.ts';
import { additionalData, keyInfo, type SealContext } from '../seal/context.ts';
import type { CollectedSignals, ConsentReceipt, Recipient, SealedBundle } from './types.ts';

/** Builds the plaintext of a bundle and seals it to the tenant's key with Web Crypto (contract section 2). */

const NONCE_BYTES = 16;

/** Copies only the receipt's fields: a page may pass a richer object. */
function wireReceipt(receipt: ConsentReceipt): ConsentReceipt {
  const { purposes, gpc, version, issuedAt, proof, principalId } = receipt;
  // JSON omits undefined fields; the server would refuse null.
  return {
    purposes,
    gpc,
    version,
    issuedAt,
    proof: proof ? { seq: proof.seq, hash: proof.hash } : undefined,
    principalId: principalId ?? undefined,
  };
}

/**
 * The plaintext of a bundle (contract section 2), with a new nonce and time on every call.
 * @param aheadMs milliseconds by which this device's clock is ahead of the server's
 * @param after the earlier request of this session that the bundle supersedes
 * @param context the page's name for what the verdict is for
 */
export function makePlaintext(
  consent: ConsentReceipt,
  signals: CollectedSignals,
  aheadMs = 0,
  after?: string,
  context?: string,
): Uint8Array<ArrayBuffer> {
  const body = {
    v: 1,
    nonce: toBase64Url(randomBytes(NONCE_BYTES)),
    clientTs: Date.now() - aheadMs,
    consent: wireReceipt(consent),
    signals,
    after,
    // A page without types may pass a number.
    context: context?.toString(),
  };
  return new TextEncoder().encode(toJson(body));
}

const CURVE = { name: 'ECDH', namedCurve: 'P-256' } as const;

/** Seals as gpd-seal/1 (contract section 2) with a given ephemeral key and IV, for the known-answer test. */
export async function sealWith(
  recipient: Recipient,
  plaintext: Uint8Array<ArrayBuffer>,
  { ephemeral, iv }: { readonly ephemeral: CryptoKeyPair; readonly iv: Uint8Array<ArrayBuffer> },
): Promise<SealedBundle> {
  const { subtle } = crypto;
  const publicKey = fromBase64(recipient.publicKey);
  const point = await subtle.importKey('raw', publicKey, CURVE, false, []);
  const epk = new Uint8Array(await subtle.exportKey('raw', ephemeral.publicKey));
  const context: SealContext = { alg: ASYMMETRIC_ALG, kid: recipient.kid, epk, recipient: publicKey };
  const agreement = { name: 'ECDH', public: point };
  const shared = await subtle.deriveBits(agreement, ephemeral.privateKey, KEY_BYTES * 8);
  const secret = await subtle.importKey('raw', shared, 'HKDF', false, ['deriveKey']);
  const key = await subtle.deriveKey(
    { name: 'HKDF', hash: 'SHA-256', salt: new TextEncoder().encode(SEAL_VERSION), info: keyInfo(context) },
    secret,
    { name: 'AES-GCM', length: KEY_BYTES * 8 },
    false,
    ['encrypt'],
  );
  const ct = await subtle.encrypt(
    { name: 'AES-GCM', iv, additionalData: additionalData(context, iv), tagLength: TAG_BYTES * 8 },
    key,
    plaintext,
  );
  return { kid: recipient.kid, epk: toBase64(epk), iv: toBase64(iv), ct: toBase64(new Uint8Array(ct)) };
}

/**
 * Seals bytes to a tenant's public key; this browser cannot open the result.
 * @throws {Error} when `recipient.publicKey` is not a point of P-256
 */
export async function sealBundle(
  recipient: Recipient,
  plaintext: Uint8Array<ArrayBuffer>,
): Promise<SealedBundle> {
  const ephemeral = await crypto.subtle.generateKey(CURVE, false, ['deriveBits']);
  return sealWith(recipient, plaintext, { ephemeral, iv: randomBytes(IV_BYTES) });
}
