import { createCipheriv, createDecipheriv } from 'node:crypto';
import { z } from 'zod';
import { DAY, MINUTE } from '../lib/clock.ts';
import { hmacSha256, sha256 } from '../lib/hash.ts';
import type { Random } from '../lib/random.ts';

/** Contract 3.5: AES-256-GCM, base64url, under a key of the day, bound to one session and one origin. */

export const TOKEN_TTL_MS = 5 * MINUTE;
const DAY_BYTES = 4;
const IV_BYTES = 12;
const TAG_BYTES = 16;

export interface TokenBinding {
  /** The value of the gp_session cookie. */
  readonly session: string;
  readonly origin: string;
}

export interface TokenSubject {
  readonly kid: string;
  readonly requestId: string;
}

const plaintextSchema = z.tuple([z.string(), z.string(), z.int()]);

function dayKey(serverSecret: Uint8Array, day: number): Buffer {
  return hmacSha256(serverSecret, `gpd/transparency-token/v1 ${day}`);
}

function additionalData(binding: TokenBinding, day: number): Buffer {
  return sha256(JSON.stringify([sha256(binding.session).toString('base64url'), binding.origin, day]));
}

/** Plaintext: tenant, requestId, expiry. It never carries a visitorId. */
export function issueToken(
  serverSecret: Uint8Array,
  random: Random,
  now: number,
  subject: TokenSubject,
  binding: TokenBinding,
): string {
  const day = Math.floor(now / DAY);
  const head = Buffer.alloc(DAY_BYTES);
  head.writeUInt32BE(day);
  const iv = random(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', dayKey(serverSecret, day), iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(additionalData(binding, day));
  const plaintext = JSON.stringify([subject.kid, subject.requestId, now + TOKEN_TTL_MS]);
  return Buffer.concat([head, iv, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]).toString(
    'base64url',
  );
}

/** Null for every cause alike: malformed, expired, of another session or another origin. */
export function openToken(
  serverSecret: Uint8Array,
  now: number,
  token: string,
  binding: TokenBinding,
): TokenSubject | null {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.toString('base64url') !== token || bytes.length <= DAY_BYTES + IV_BYTES + TAG_BYTES) return null;
  const day = bytes.readUInt32BE(0);
  const iv = bytes.subarray(DAY_BYTES, DAY_BYTES + IV_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', dayKey(serverSecret, day), iv, {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(additionalData(binding, day));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    const sealed = bytes.subarray(DAY_BYTES + IV_BYTES, -TAG_BYTES);
    const text = Buffer.concat([decipher.update(sealed), decipher.final()]).toString();
    const [kid, requestId, expiresAt] = plaintextSchema.parse(JSON.parse(text));
    return now < expiresAt ? { kid, requestId } : null;
  } catch {
    return null;
  }
}
