import { decryptGcm, encryptGcm, GCM_IV_BYTES } from '../lib/gcm.ts';
import type { Random } from '../lib/random.ts';

/** The ID token of a session, as its row keeps it for the sign-out: under a key of the server, bound to the session. */

/** It is sent in an address; some servers refuse a longer one. */
const MAX_CHARS = 4096;

const aadOf = (hash: string): Buffer => Buffer.from(`gpd/console-id-token/v1|${hash}`);

export function sealIdToken(key: Uint8Array, random: Random, hash: string, token: string): string | null {
  if (token.length > MAX_CHARS) return null;
  const iv = random(GCM_IV_BYTES);
  return Buffer.concat([iv, encryptGcm(key, iv, aadOf(hash), Buffer.from(token))]).toString('base64url');
}

/** Null for every cause alike. */
export function openIdToken(key: Uint8Array, hash: string, sealed: string | null): string | null {
  const bytes = Buffer.from(sealed ?? '', 'base64url');
  const [iv, rest] = [bytes.subarray(0, GCM_IV_BYTES), bytes.subarray(GCM_IV_BYTES)];
  return decryptGcm(key, iv, aadOf(hash), rest)?.toString() ?? null;
}
