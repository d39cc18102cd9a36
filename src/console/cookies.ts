import { z } from 'zod';
import type { LoginChallenge, SignInPrompt } from '../auth/credentials.ts';
import { MINUTE } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { decryptText, encryptText } from '../lib/crypto.ts';
import { isLoopback } from '../lib/ip.ts';

/**
 * The cookies of the console, and the values that are encrypted for them. Over https they have the
 * prefix `__Host-` (RFC 6265bis section 4.1.3.2), so that no sibling host can set them. Plain http
 * is only allowed on this machine; browsers refuse the prefix there, because it requires Secure.
 */

export const LOGIN_MS = 10 * MINUTE;

export function cookieNames(origin: string) {
  const secure = origin.startsWith('https:');
  const prefix = secure ? '__Host-' : '';
  // Each pending sign-in has a separate cookie, so that two tabs do not overwrite each other's.
  return {
    session: `${prefix}gpd_console`,
    flash: `${prefix}gpd_flash`,
    login: (state: string) => `${prefix}gpd_login_${state.replace(/[^\w-]/g, '').slice(0, 8)}`,
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

export interface PendingLogin extends LoginChallenge {
  /** The console address that the person first asked for. */
  readonly back: string;
  readonly prompt: SignInPrompt | null;
}

const LOGIN_PURPOSE = 'gpd/console-login/v1';
const promptSchema = z.enum(['select_account', 'login']).nullable();
const pendingSchema = z.tuple([z.string(), z.string(), z.string(), z.string(), z.number(), promptSchema]);

/**
 * A pending sign-in is in an encrypted cookie and not in the database, so that strangers cannot fill a table.
 */
export function encryptLogin(key: Uint8Array, random: Random, login: PendingLogin, now: number): string {
  const { state, nonce, verifier, back, prompt } = login;
  const text = JSON.stringify([state, nonce, verifier, back, now + LOGIN_MS, prompt]);
  return encryptText(key, random, LOGIN_PURPOSE, text);
}

/** @returns null for every cause alike, so that a forger learns nothing */
export function decryptLogin(key: Uint8Array, value: string, now: number) {
  const plain = decryptText(key, LOGIN_PURPOSE, value);
  if (plain === null) return null;
  const read = pendingSchema.safeParse(JSON.parse(plain));
  if (!read.success) return null;
  const [state, nonce, verifier, back, expiresAt, prompt] = read.data;
  return now < expiresAt ? { state, nonce, verifier, back, prompt, expiresAt } : null;
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
