import { HOUR, MINUTE } from '../lib/clock.ts';
import { createUlid, type Random, sha256 } from '../lib/crypto.ts';
import type { KeyScope } from '../schema/route.ts';
import type { Claims } from './tokens.ts';

/**
 * Credentials that gpd issues: API keys, principal sessions and console sessions. The types of a sign-in,
 * which egress and the console share, are here too. Pure: stores are in consent, console and tenants.
 */

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
  /** Lower-case hex SHA-256 of the key; gpd stores nothing else of it. */
  readonly hash: string;
  readonly createdAt: number;
  readonly revokedAt: number | null;
  /** `YYYY-MM-DD`: only the day, so that the table does not become a log of calls. */
  readonly lastUsedOn: string | null;
}

/** @returns the key, which is shown once and never stored */
export function createApiKeySecret(scope: KeyScope, random: Random): string {
  return KEY_PREFIX[scope] + random(32).toString('base64url');
}

/** @returns the new row for the database, and the secret, which is shown once */
export function createApiKey(
  fields: Pick<ApiKey, 'kid' | 'scope' | 'name'>,
  createdAt: number,
  random: Random,
) {
  const secret = createApiKeySecret(fields.scope, random);
  const id = `key_${createUlid(() => createdAt, random)}`;
  const hash = hashSecret(secret);
  const key: ApiKey = { id, ...fields, hash, createdAt, revokedAt: null, lastUsedOn: null };
  return { key, secret };
}

const SECRET = /^gpd_(?:pk|sk|ro|op)_[\w-]{43}$/;

/** A cheap check of the form: gpd never issued a text that fails it, so no look-up is needed. */
export function isApiKeySecret(text: string): boolean {
  return SECRET.test(text);
}

/** Hashes an API key or a session token for the database, which never stores the secret itself. */
export const hashSecret = (secret: string): string => sha256(secret).toString('hex');

const BEARER = /^Bearer +([\x21-\x7e]{1,512})$/i;

/** The credential of an `Authorization: Bearer …` header, or null. */
export function bearerToken(header: string | undefined): string | null {
  return header === undefined ? null : (BEARER.exec(header)?.[1] ?? null);
}

/** A principal session (contract section 7) stands for one person, whom the tenant's backend verified. */
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

/**
 * A console session of staff is stored by the server and can
 * be revoked. It ends after half an hour without a request.
 */
const CONSOLE_IDLE_MS = 30 * MINUTE;
/** A console session ends after this time even if it is in use. */
export const CONSOLE_ABSOLUTE_MS = 8 * HOUR;

export const STAFF_ROLES = ['reviewer', 'dpo', 'operator'] as const;
export type StaffRole = (typeof STAFF_ROLES)[number];

export interface ConsoleSession {
  /** SHA-256 of the cookie's value; the database never stores the value itself. */
  readonly hash: string;
  readonly kid: string;
  /** Keyed reference of the staff member. */
  readonly actor: string;
  /** The name that colleagues see on a case which this staff member has claimed. */
  readonly label: string;
  readonly roles: readonly string[];
  /**
   * The identity provider that vouched for the person, as `hashProvider` writes it; null if a passkey did.
   */
  readonly provider: string | null;
  readonly csrf: string;
  /** Encrypted; null if the identity provider has no sign-out endpoint. */
  readonly idToken: string | null;
  readonly createdAt: number;
  readonly seenAt: number;
  readonly expiresAt: number;
}

export function createConsoleToken(random: Random): string {
  return random(32).toString('base64url');
}

/** A session from the future is invalid: it began while a clock was ahead, and would live longer. */
export function isLiveSession(session: ConsoleSession, now: number): boolean {
  const { createdAt, seenAt, expiresAt } = session;
  if (Math.max(createdAt, seenAt) > now + MINUTE) return false;
  return now < expiresAt && now < seenAt + CONSOLE_IDLE_MS;
}

/**
 * The role with the most rights. A dpo may do all that a
 * reviewer may; an operator sees only pages that name nobody.
 */
export function roleOf({ roles }: Pick<ConsoleSession, 'roles'>): StaffRole {
  if (roles.includes('dpo')) return 'dpo';
  return roles.includes('reviewer') ? 'reviewer' : 'operator';
}

/** The role that a page requires; `staff` admits everyone who can sign in, and a dpo opens all. */
export type PageRole = 'staff' | StaffRole;

export function mayOpen(role: StaffRole, page: PageRole): boolean {
  return page === 'staff' || page === role || role === 'dpo';
}

/** The reason why a sign-in failed; the sign-in page has a sentence for each. */
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

/** A sign-in is checked against these values when the browser comes back from the identity provider. */
export interface LoginChallenge {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** Values of `prompt` (OIDC core section 3.1.2.1). All providers know `login`, only some `select_account`. */
export type SignInPrompt = 'select_account' | 'login';

export interface VerifiedLogin {
  readonly idToken: string;
  /** The claims of the ID token; its signature, issuer, audience, times and nonce were checked. */
  readonly claims: Claims;
  /** Adds the claims of the userinfo endpoint, for an ID token that lacks the ones gpd needs. */
  fetchUserinfoClaims(): Promise<Claims>;
}
