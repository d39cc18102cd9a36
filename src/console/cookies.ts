import { z } from 'zod';
import type { Ceremony } from '../attest/ceremony.ts';
import { MINUTE } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { decryptText, encryptText } from '../lib/crypto.ts';
import { isLoopback } from '../lib/ip.ts';

/**
 * The cookies of the console, and the values that are encrypted for them. Over https they have the
 * prefix `__Host-` (RFC 6265bis section 4.1.3.2), so that no sibling host can set them. Plain http
 * is only allowed on this machine; browsers refuse the prefix there, because it requires Secure.
 */

export function cookieNames(origin: string) {
  const secure = origin.startsWith('https:');
  const prefix = secure ? '__Host-' : '';
  // Each pending sign-in has a separate cookie, so that two tabs do not overwrite each other's.
  return {
    session: `${prefix}gpd_console`,
    flash: `${prefix}gpd_flash`,
    login: (id: string) => `${prefix}gpd_login_${id.replace(/[^\w-]/g, '').slice(0, 8)}`,
    secure,
  };
}

/** Plain http is only allowed on this machine: anywhere else the session would be sent unencrypted. */
export function canServe(origin: string): boolean {
  const { protocol, hostname } = new URL(origin);
  return protocol === 'https:' || isLoopback(hostname);
}

/** SameSite is Lax and not Strict, because the identity provider sends the browser back from another site. */
export function formatCookie(name: string, value: string, maxAgeMs: number, secure: boolean): string {
  const age = Math.max(0, Math.floor(maxAgeMs / 1000));
  return `${name}=${value}; HttpOnly; ${secure ? 'Secure; ' : ''}SameSite=Lax; Path=/; Max-Age=${age}`;
}

/**
 * A pending sign-in has a kind, and a text that its answer has to repeat: the state of an identity provider,
 * or the challenge of a passkey.
 */
export interface SignInId {
  readonly kind: 'provider' | Ceremony;
  readonly id: string;
}

/** Milliseconds that a sign-in may take. */
export const PENDING_MS = { provider: 10 * MINUTE, create: 5 * MINUTE, get: 5 * MINUTE } as const;

/** Only a sign-in at an identity provider has details. The browser has them, encrypted, and nobody else. */
const detailsSchema = z.object({
  nonce: z.string(),
  verifier: z.string(),
  /** The console address that the person first asked for. */
  back: z.string(),
  prompt: z.enum(['select_account', 'login']).nullable(),
});
export type SignInDetails = z.output<typeof detailsSchema>;

const pendingSchema = z.object({ expiresAt: z.int(), details: detailsSchema.nullable() });
export type PendingSignIn = z.output<typeof pendingSchema>;

/** The cookie of one sign-in decrypts for no other kind and no other answer. */
const pendingContext = ({ kind, id }: SignInId): string => `gpd/console-login/v1|${kind}|${id}`;

/** A pending sign-in is in a cookie and not in the database, so that strangers cannot fill a table. */
export function encryptPending(
  key: Uint8Array,
  random: Random,
  which: SignInId,
  pending: PendingSignIn,
): string {
  return encryptText(key, random, pendingContext(which), JSON.stringify(pending));
}

/** @returns null for every cause alike, so that a forger learns nothing */
export function decryptPending(
  key: Uint8Array,
  which: SignInId,
  cookie: string,
  now: number,
): PendingSignIn | null {
  const text = decryptText(key, pendingContext(which), cookie);
  const { data } = pendingSchema.safeParse(text === null ? null : JSON.parse(text));
  if (!data || now >= data.expiresAt) return null;
  // A clock that was ahead made it, and it would live that much longer.
  return data.expiresAt <= now + PENDING_MS[which.kind] + MINUTE ? data : null;
}

/** Accepts only addresses within the console, because phishers use open redirects. */
export function sanitiseBack(value: unknown): string {
  const isConsoleAddress =
    typeof value === 'string' && value.length <= 512 && /^\/console(?:[/?][\w./?=&%~-]*)?$/.test(value);
  // Browsers read %2e%2e as `..` too.
  return isConsoleAddress &&
    !/\/\/|(?:\.|%2e){2}/i.test(value) &&
    !/^\/console\/(?:login|callback|logout|signed-out|join|passkey)\b/.test(value)
    ? value
    : '/console';
}

/** The sign-out sends the ID token in an address, and some servers refuse longer ones. */
const MAX_ID_TOKEN_LENGTH = 4096;

/** Binds the encrypted ID token to its session. */
const idTokenContext = (hash: string): string => `gpd/console-id-token/v1|${hash}`;

export function encryptIdToken(key: Uint8Array, random: Random, hash: string, token: string): string | null {
  return token.length > MAX_ID_TOKEN_LENGTH ? null : encryptText(key, random, idTokenContext(hash), token);
}

/** @returns null for every cause alike */
export const decryptIdToken = (key: Uint8Array, hash: string, ciphertext: string | null): string | null =>
  decryptText(key, idTokenContext(hash), ciphertext ?? '');
