import { sha256 } from '../lib/hash.ts';
import { makeUlid, type Random } from '../lib/random.ts';
import type { KeyScope } from '../schema/route.ts';

/** Consent API keys (contract section 7): 32 random bytes behind a prefix that names the scope. */

const PREFIX: Readonly<Record<KeyScope, string>> = {
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
export function makeApiKeySecret(scope: KeyScope, random: Random): string {
  return PREFIX[scope] + random(32).toString('base64url');
}

/** A new key as it is stored, and its secret, to be shown once. */
export function makeApiKey(of: Pick<ApiKey, 'kid' | 'scope' | 'name'>, createdAt: number, random: Random) {
  const secret = makeApiKeySecret(of.scope, random);
  const id = `key_${makeUlid(() => createdAt, random)}`;
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
