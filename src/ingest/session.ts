import type { ConsentEvent } from '../consent/decide.ts';
import type { GrantClaim } from '../consent/doubts-store.ts';
import { cookieValues } from '../http/request.ts';
import { MINUTE } from '../lib/clock.ts';
import { equalBytes, hmacSha256, hmacSha256Text, ulidTime } from '../lib/crypto.ts';
import type { Tenant } from '../tenants/tenant.ts';

/**
 * Makes and checks the session cookie of a request, and decides whether a later bundle may supersede the
 * request (contract-2 section 18).
 */

export type Sessions = ReturnType<typeof createSessions>;

/** Time within which a later bundle may supersede a request. */
const LIFE_MS = 30 * MINUTE;
/** The clock of the node that made the request may be ahead. */
const AHEAD_MS = MINUTE;
const PREFIX = 'req_';

/**
 * gp_session is a MAC of its request, so that a later bundle can be checked against it and nothing is stored
 * (ADR 0054).
 */
export function createSessions(serverSecret: Uint8Array) {
  const key = hmacSha256(serverSecret, 'gpd/session/v1');
  const of = (kid: string, requestId: string): string => hmacSha256Text(key, `${kid} ${requestId}`);
  return {
    of,
    /**
     * True when the session of that request is among the cookies: a sibling host may have added one. The
     * request's time is a part of its id, which the MAC covers.
     */
    has(cookie: string | undefined, kid: string, requestId: string, now: number): boolean {
      const expected = Buffer.from(of(kid, requestId));
      const isOf = (value: string): boolean => equalBytes(Buffer.from(value), expected);
      const age = now - ulidTime(requestId.slice(PREFIX.length));
      return age <= LIFE_MS && age >= -AHEAD_MS && cookieValues(cookie, 'gp_session').some(isOf);
    },
  };
}

/** Interface section 3. */
export const sessionCookie = (session: string): string =>
  `gp_session=${session}; HttpOnly; Secure; SameSite=Strict; Path=/; Max-Age=2592000`;

/** The updates of a request that are stored. */
export interface Updates {
  /** True if the request ends a chain of the maximum length, so that no other may supersede it. */
  endsChain(kid: string, requestId: string): Promise<boolean>;
  /** Keyed reference of the principal that the request is linked to, or null. */
  linkedTo(kid: string, requestId: string): Promise<string | null>;
}

interface Later {
  /** The request that the bundle wants to supersede, if any. */
  readonly after: string | undefined;
  readonly cookie: string | undefined;
  readonly now: number;
  readonly claimedGrant: GrantClaim | null;
  readonly grant: ConsentEvent | null;
}

/**
 * A bundle that supersedes a request must come from the request's session. A stolen cookie cannot supersede a
 * request that is linked to a principal.
 */
export async function maySupersede(
  { sessions, updates }: { readonly sessions: Pick<Sessions, 'has'>; readonly updates: Updates },
  { kid, refOf }: Pick<Tenant, 'kid' | 'refOf'>,
  { after, cookie, now, claimedGrant, grant }: Later,
): Promise<boolean> {
  if (after === undefined) return true;
  if (!sessions.has(cookie, kid, after, now)) return false;
  if (await updates.endsChain(kid, after)) return false;
  const linked = await updates.linkedTo(kid, after);
  // Only the browser that got the answer to the grant can name it; the id of a principal is not a secret.
  return (
    linked === null || (grant !== null && claimedGrant !== null && refOf(claimedGrant.principalId) === linked)
  );
}
