import { HOUR, MINUTE } from '../lib/clock.ts';
import { createUlid, type Random, sha256 } from '../lib/crypto.ts';
import type { KeyScope } from '../schema/route.ts';
import type { Claims } from './tokens.ts';

/** Consent API keys (contract section 7): 32 random bytes behind a prefix that names the scope. */

const KEY_PREFIX: Readonly<Record<KeyScope, string>> = {
  publishable: 'gpd_pk_',
  secret: 'gpd_sk_',
  'read-only': 'gpd_ro_',
  operator: 'gpd_op_',
};

export interface ApiKey {
  readonly id: string;
  readonly kid: string;
  readonly scope: KeyScope;
  readonly name: string;
  /** Lower-case hex SHA-256 of the key: all that is kept of it. */
  readonly hash: string;
  readonly createdAt: number;
  readonly revokedAt: number | null;
  /** `YYYY-MM-DD`; to the day, so that the table is no log of calls. */
  readonly lastUsedOn: string | null;
}

/** @returns the key, to be shown once */
export function createApiKeySecret(scope: KeyScope, random: Random): string {
  return KEY_PREFIX[scope] + random(32).toString('base64url');
}

/** A new key as it is stored, and its secret, to be shown once. */
export function createApiKey(of: Pick<ApiKey, 'kid' | 'scope' | 'name'>, createdAt: number, random: Random) {
  const secret = createApiKeySecret(of.scope, random);
  const id = `key_${createUlid(() => createdAt, random)}`;
  const key: ApiKey = { id, ...of, hash: hashSecret(secret), createdAt, revokedAt: null, lastUsedOn: null };
  return { key, secret };
}

const SECRET = /^gpd_(?:pk|sk|ro|op)_[\w-]{43}$/;

/** Whether it has the form of a key: what has not was never made. */
export function isApiKeySecret(text: string): boolean {
  return SECRET.test(text);
}

/** All that is kept of a key or of a session's token. */
export const hashSecret = (secret: string): string => sha256(secret).toString('hex');

const BEARER = /^Bearer +([\x21-\x7e]{1,512})$/i;

/** The credential of an `Authorization: Bearer …` header, or null. */
export function bearerToken(header: string | undefined): string | null {
  return header === undefined ? null : (BEARER.exec(header)?.[1] ?? null);
}

/** Principal sessions (contract section 7): a person, verified by the tenant's backend, for at most 15 minutes. */

const SESSION_PREFIX = 'gpd_ps_';
export const SESSION_TTL_MS = 15 * 60 * 1000;

export interface PrincipalSession {
  readonly kid: string;
  /** Keyed reference of the principal. */
  readonly principal: string;
  readonly principalId: string;
  readonly expiresAt: number;
}

export function createSessionToken(random: Random): string {
  return SESSION_PREFIX + random(32).toString('base64url');
}

export function isSessionToken(token: string): boolean {
  return token.startsWith(SESSION_PREFIX);
}

/** Sessions of staff in the console: server-side, revocable, 30 minutes idle and 8 hours in all. */

const CONSOLE_IDLE_MS = 30 * MINUTE;
export const CONSOLE_ABSOLUTE_MS = 8 * HOUR;

export const STAFF_ROLES = ['reviewer', 'dpo', 'operator'] as const;
export type StaffRole = (typeof STAFF_ROLES)[number];

export interface ConsoleSession {
  /** SHA-256 of the cookie's value; what the database holds. */
  readonly hash: string;
  readonly kid: string;
  /** Keyed reference of the person. */
  readonly actor: string;
  /** How colleagues see who holds a case. */
  readonly label: string;
  readonly roles: readonly string[];
  readonly csrf: string;
  /** Encrypted; null when the provider takes no sign-out from here. */
  readonly idToken: string | null;
  readonly createdAt: number;
  readonly seenAt: number;
  readonly expiresAt: number;
}

export function createConsoleToken(random: Random): string {
  return random(32).toString('base64url');
}

/** Started while a clock was ahead, it would live that much longer: it counts as invalid. */
export function isLiveSession(session: ConsoleSession, now: number): boolean {
  const { createdAt, seenAt, expiresAt } = session;
  if (Math.max(createdAt, seenAt) > now + MINUTE) return false;
  return now < expiresAt && now < seenAt + CONSOLE_IDLE_MS;
}

/** A dpo may do what a reviewer may; an operator sees what names nobody. */
export function roleOf({ roles }: Pick<ConsoleSession, 'roles'>): StaffRole {
  if (roles.includes('dpo')) return 'dpo';
  return roles.includes('reviewer') ? 'reviewer' : 'operator';
}

/** A page for a reviewer is for a dpo too; `staff` are all who can sign in. */
export type PageRole = 'staff' | 'reviewer' | 'dpo';

export function mayOpen(role: StaffRole, page: PageRole): boolean {
  return page === 'staff' || page === role || (page === 'reviewer' && role === 'dpo');
}

/** The beginning of a session's cookie that a passkey opened: once an identity provider is set, it opens nothing. */
const PASSKEY_PREFIX = 'gpd_pk.';
export const createPasskeyToken = (random: Random): string => PASSKEY_PREFIX + createConsoleToken(random);
export const isPasskeyToken = (token: string): boolean => token.startsWith(PASSKEY_PREFIX);

/** Why a sign-in came to nothing; the page has a sentence for each. */
export type LoginFault =
  | 'cancelled'
  | 'not-yours'
  | 'provider-refused'
  | 'token'
  | 'userinfo'
  | 'invitation'
  | 'passkey';

export class LoginRefused extends Error {
  readonly fault: LoginFault;

  constructor(fault: LoginFault) {
    super(`sign-in refused: ${fault}`);
    this.name = 'LoginRefused';
    this.fault = fault;
  }
}

/** What a sign-in has to remember until the person comes back from the identity provider. */
export interface LoginBegun {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** Values of `prompt` (OIDC core section 3.1.2.1). Every provider knows `login`; not every one `select_account`. */
export type Switching = 'select_account' | 'login';

export interface VerifiedLogin {
  readonly idToken: string;
  /** Of the ID token, whose signature, issuer, audience, times and nonce were checked. */
  readonly claims: Claims;
  /** The same and what the userinfo endpoint adds; asked for when the ID token says too little. */
  more(): Promise<Claims>;
}
