import { createCipheriv, createDecipheriv, createHmac, hash, timingSafeEqual } from 'node:crypto';
import type { Clock } from './clock.ts';

/** Hashes, MACs, AES-GCM, strict base64, random bytes and ULIDs, by node:crypto. */

export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', data, 'buffer');
}

/** Like {@link sha256}, as base64url and without a Buffer in between. */
export function sha256Text(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64url');
}

export function hmacSha256(key: Uint8Array, data: string | Uint8Array): Buffer {
  return createHmac('sha256', key).update(data).digest();
}

/** Like {@link hmacSha256}, as base64url and without a Buffer in between. */
export function hmacSha256Text(key: Uint8Array, data: string | Uint8Array): string {
  return createHmac('sha256', key).update(data).digest('base64url');
}

/** Constant-time for inputs of one length; the length itself is not a secret anywhere in gpd. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/**
 * Decodes canonical padded base64 (RFC 4648 section 4). Null for text that an encoder would not write:
 * missing padding, url alphabet, white space, non-zero trailing bits.
 */
export function decodeBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

/** Decodes canonical unpadded base64url (RFC 4648 section 5), or returns null. */
export function decodeBase64Url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}

export const GCM_IV_BYTES = 12;
const GCM_TAG_BYTES = 16;
const OPTIONS = { authTagLength: GCM_TAG_BYTES };

/**
 * AES-256-GCM with a 96-bit IV and a 128-bit tag after the ciphertext, the only form that gpd uses.
 * @returns ciphertext || tag
 */
export function encryptGcm(key: Uint8Array, iv: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, iv, OPTIONS);
  cipher.setAAD(aad);
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** Null for each cause: a wrong key, IV, tag or additional data, or too few bytes. */
export function decryptGcm(key: Uint8Array, iv: Uint8Array, aad: Uint8Array, ciphertext: Uint8Array) {
  if (iv.length !== GCM_IV_BYTES || ciphertext.length < GCM_TAG_BYTES) return null;
  // Without authTagLength Node would accept a tag of 4 bytes.
  const decipher = createDecipheriv('aes-256-gcm', key, iv, OPTIONS);
  decipher.setAAD(aad);
  decipher.setAuthTag(ciphertext.subarray(ciphertext.length - GCM_TAG_BYTES));
  const plaintext = decipher.update(ciphertext.subarray(0, ciphertext.length - GCM_TAG_BYTES));
  try {
    // GCM is a stream cipher: the text is complete, and `final` only checks the tag.
    decipher.final();
    return plaintext;
  } catch {
    return null;
  }
}

/**
 * base64url of IV and ciphertext.
 * @param use the purpose: text encrypted for one use does not decrypt for another
 */
export function encryptText(key: Uint8Array, random: Random, use: string, text: string): string {
  const iv = random(GCM_IV_BYTES);
  return Buffer.concat([iv, encryptGcm(key, iv, Buffer.from(use), Buffer.from(text))]).toString('base64url');
}

/** Null for each cause of failure. */
export function decryptText(key: Uint8Array, use: string, ciphertext: string): string | null {
  const bytes = Buffer.from(ciphertext, 'base64url');
  const [iv, rest] = [bytes.subarray(0, GCM_IV_BYTES), bytes.subarray(GCM_IV_BYTES)];
  return decryptGcm(key, iv, Buffer.from(use), rest)?.toString() ?? null;
}

/** Returns `size` unpredictable bytes; `node:crypto.randomBytes` in production, a seeded source in tests. */
export type Random = (size: number) => Buffer;

const POOL_BYTES = 4096;

/**
 * Draws larger pieces from the system and returns each byte once. For nonces, ids and salts; a long-lived key
 * is drawn separately.
 */
export function poolRandom(random: Random): Random {
  let pool: Buffer = Buffer.alloc(0);
  let at = 0;
  return (size) => {
    if (size > POOL_BYTES) return random(size);
    if (at + size > pool.length) {
      pool = random(POOL_BYTES);
      at = 0;
    }
    at += size;
    return pool.subarray(at - size, at);
  };
}

/** Crockford base32. */
export const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

const PAIRS = Array.from({ length: 1024 }, (_, i) => ALPHABET.charAt(i >> 5) + ALPHABET.charAt(i & 31));

/** Crockford base32 of the low `digits` × 5 bits of a non-negative safe integer. */
function base32(value: number, digits: 8 | 10): string {
  let text = '';
  let rest = value;
  for (let i = 0; i < digits; i += 2) {
    text = (PAIRS[rest % 1024] as string) + text;
    rest = Math.floor(rest / 1024);
  }
  return text;
}

/** The time in milliseconds of a ULID from {@link createUlid}. */
export function ulidTime(ulid: string): number {
  let ms = 0;
  for (const digit of ulid.slice(0, 10)) ms = ms * 32 + ALPHABET.indexOf(digit);
  return ms;
}

/** A ULID: 48 bits of milliseconds, 80 random bits; 26 characters that sort by time. */
export function createUlid(clock: Clock, random: Random): string {
  const bytes = random(10);
  const high = bytes.readUIntBE(0, 5);
  const low = bytes.readUIntBE(5, 5);
  return base32(clock(), 10) + base32(high, 8) + base32(low, 8);
}
