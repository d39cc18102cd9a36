import { decryptText, encryptText } from '../lib/gcm.ts';
import type { Random } from '../lib/random.ts';

/** The ID token of a session, as its row keeps it for the sign-out: under a key of the server, bound to the session. */

/** It is sent in an address; some servers refuse a longer one. */
const MAX_CHARS = 4096;

const aadOf = (hash: string): string => `gpd/console-id-token/v1|${hash}`;

export function encryptIdToken(key: Uint8Array, random: Random, hash: string, token: string): string | null {
  return token.length > MAX_CHARS ? null : encryptText(key, random, aadOf(hash), token);
}

/** Null for every cause alike. */
export const decryptIdToken = (key: Uint8Array, hash: string, ciphertext: string | null): string | null =>
  decryptText(key, aadOf(hash), ciphertext ?? '');
