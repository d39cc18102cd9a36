import type { Random } from '../lib/random.ts';

/** Principal sessions (contract section 7): a person, verified by the tenant's backend, for at most 15 minutes. */

const PREFIX = 'gpd_ps_';
export const SESSION_TTL_MS = 15 * 60 * 1000;

export interface PrincipalSession {
  readonly kid: string;
  /** Keyed reference of the principal. */
  readonly principal: string;
  readonly principalId: string;
  readonly expiresAt: number;
}

export function makeSessionToken(random: Random): string {
  return PREFIX + random(32).toString('base64url');
}

export function isSessionToken(token: string): boolean {
  return token.startsWith(PREFIX);
}
