import { cookieValues } from '../http/request.ts';
import { MINUTE } from '../lib/clock.ts';
import { equalBytes, hmacSha256, makeHmacSha256, ulidTime } from '../lib/crypto.ts';

export type Sessions = ReturnType<typeof makeSessions>;

/** How long a later bundle may supersede a request (contract-2 section 18). */
const LIFE_MS = 30 * MINUTE;
/** The clock of the node that made the request may be ahead. */
const AHEAD_MS = MINUTE;
const PREFIX = 'req_';

/** gp_session is a MAC of its request, so that a later bundle can be checked against it and nothing is stored (ADR 0054). */
export function makeSessions(serverSecret: Uint8Array) {
  const mac = makeHmacSha256(hmacSha256(serverSecret, 'gpd/session/v1'));
  const of = (kid: string, requestId: string): string => mac(`${kid} ${requestId}`);
  return {
    of,
    /**
     * Whether the session of that request is among the cookies: a sibling host may have added one. The request's time is a part of
     * its id, which the MAC covers.
     */
    has(cookie: string | undefined, kid: string, requestId: string, now: number): boolean {
      const expected = Buffer.from(of(kid, requestId));
      const isOf = (value: string): boolean => equalBytes(Buffer.from(value), expected);
      const age = now - ulidTime(requestId.slice(PREFIX.length));
      return age <= LIFE_MS && age >= -AHEAD_MS && cookieValues(cookie, 'gp_session').some(isOf);
    },
  };
}
