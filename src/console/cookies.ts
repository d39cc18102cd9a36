import { z } from 'zod';
import type { LoginChallenge, SignInPrompt } from '../auth/credentials.ts';
import { MINUTE } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { decryptText, encryptText } from '../lib/crypto.ts';

/**
 * The console's cookies. Over https both are `__Host-` (RFC 6265bis section 4.1.3.2): no sibling host can set them. Plain
 * http is for this machine alone, where browsers refuse that prefix without Secure: there they have a plain name.
 */

export const LOGIN_MS = 10 * MINUTE;

export function cookieNames(origin: string) {
  const secure = origin.startsWith('https:');
  const prefix = secure ? '__Host-' : '';
  // One for each sign-in that is under way, so that two tabs do not spoil each other's.
  return {
    session: `${prefix}gpd_console`,
    login: (state: string) => `${prefix}gpd_login_${state.replace(/[^\w-]/g, '').slice(0, 8)}`,
    secure,
  };
}

/** Plain http is taken from this machine alone: elsewhere the session would travel in the clear. */
export function mayServe(origin: string): boolean {
  const { protocol, hostname } = new URL(origin);
  return protocol === 'https:' || /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})$/.test(hostname);
}

/** Lax and not Strict: the way back from the identity provider is a navigation from another site. */
export function setCookie(name: string, value: string, maxAgeMs: number, secure: boolean): string {
  const age = Math.max(0, Math.floor(maxAgeMs / 1000));
  return `${name}=${value}; HttpOnly; ${secure ? 'Secure; ' : ''}SameSite=Lax; Path=/; Max-Age=${age}`;
}

export interface PendingLogin extends LoginChallenge {
  /** Where the person wanted to go. */
  readonly back: string;
  readonly switching: SignInPrompt | null;
}

const USE = 'gpd/console-login/v1';
const switchingSchema = z.enum(['select_account', 'login']).nullable();
const pendingSchema = z.tuple([z.string(), z.string(), z.string(), z.string(), z.number(), switchingSchema]);

/** Encrypted and not stored: a stranger who begins a thousand sign-ins writes nothing. */
export function encryptLogin(key: Uint8Array, random: Random, login: PendingLogin, now: number): string {
  const { state, nonce, verifier, back, switching } = login;
  const text = JSON.stringify([state, nonce, verifier, back, now + LOGIN_MS, switching]);
  return encryptText(key, random, USE, text);
}

/** Null for every cause alike. */
export function decryptLogin(key: Uint8Array, value: string, now: number) {
  const plain = decryptText(key, USE, value);
  if (plain === null) return null;
  const read = pendingSchema.safeParse(JSON.parse(plain));
  if (!read.success) return null;
  const [state, nonce, verifier, back, expiresAt, switching] = read.data;
  return now < expiresAt ? { state, nonce, verifier, back, switching, expiresAt } : null;
}

/** Only addresses of the console itself: an open redirect is a phisher's tool. */
export function safeBack(value: unknown): string {
  const ok =
    typeof value === 'string' && value.length <= 512 && /^\/console(?:[/?][\w./?=&%~-]*)?$/.test(value);
  // A browser takes %2e%2e for `..` as well.
  return ok &&
    !/\/\/|(?:\.|%2e){2}/i.test(value) &&
    !/^\/console\/(?:login|callback|logout|signed-out|join|passkey)\b/.test(value)
    ? value
    : '/console';
}

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
