import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { Random } from './random.ts';

/** AES-256-GCM with a 96-bit IV and a 128-bit tag behind the ciphertext, the only form that gpd uses. */

export const GCM_IV_BYTES = 12;
const GCM_TAG_BYTES = 16;
const OPTIONS = { authTagLength: GCM_TAG_BYTES };

/** @returns ciphertext || tag */
export function encryptGcm(key: Uint8Array, iv: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, iv, OPTIONS);
  cipher.setAAD(aad);
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** Null for every cause alike: a wrong key, IV, tag or additional data, or too few bytes. */
export function decryptGcm(key: Uint8Array, iv: Uint8Array, aad: Uint8Array, ciphertext: Uint8Array) {
  if (iv.length !== GCM_IV_BYTES || ciphertext.length < GCM_TAG_BYTES) return null;
  // Without authTagLength Node takes a tag of 4 bytes as good.
  const decipher = createDecipheriv('aes-256-gcm', key, iv, OPTIONS);
  decipher.setAAD(aad);
  decipher.setAuthTag(ciphertext.subarray(ciphertext.length - GCM_TAG_BYTES));
  const plaintext = decipher.update(ciphertext.subarray(0, ciphertext.length - GCM_TAG_BYTES));
  try {
    // A stream cipher: all of it is there, and `final` only checks the tag.
    decipher.final();
    return plaintext;
  } catch {
    return null;
  }
}

/** base64url of IV and ciphertext. @param use what it is for: what was encrypted for one use decrypts for no other */
export function encryptText(key: Uint8Array, random: Random, use: string, text: string): string {
  const iv = random(GCM_IV_BYTES);
  return Buffer.concat([iv, encryptGcm(key, iv, Buffer.from(use), Buffer.from(text))]).toString('base64url');
}

/** Null for every cause alike. */
export function decryptText(key: Uint8Array, use: string, ciphertext: string): string | null {
  const bytes = Buffer.from(ciphertext, 'base64url');
  const [iv, rest] = [bytes.subarray(0, GCM_IV_BYTES), bytes.subarray(GCM_IV_BYTES)];
  return decryptGcm(key, iv, Buffer.from(use), rest)?.toString() ?? null;
}
