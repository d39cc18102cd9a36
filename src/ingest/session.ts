import { cookieValues } from '../http/cookies.ts';
import { equalBytes, hmacSha256, makeHmacSha256 } from '../lib/hash.ts';

export type Sessions = ReturnType<typeof makeSessions>;

/** gp_session is a MAC of its request, so that a later bundle can be checked against it and nothing is stored (ADR 0054). */
export function makeSessions(serverSecret: Uint8Array) {
  const mac = makeHmacSha256(hmacSha256(serverSecret, 'gpd/session/v1'));
  const of = (kid: string, requestId: string): string => mac(`${kid} ${requestId}`);
  return {
    of,
    /** The session of that request among the cookies, or null: a sibling host may have added one, and a bound one has a dot. */
    find(cookie: string | undefined, kid: string, requestId: string): string | null {
      const expected = Buffer.from(of(kid, requestId));
      const isOf = (value: string): boolean =>
        equalBytes(Buffer.from(value.split('.', 1)[0] ?? ''), expected);
      return cookieValues(cookie, 'gp_session').find(isOf) ?? null;
    },
  };
}
