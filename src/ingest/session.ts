import { cookieValues } from '../http/cookies.ts';
import { equalBytes, hmacSha256, makeHmacSha256 } from '../lib/hash.ts';

export type Sessions = ReturnType<typeof makeSessions>;

/** gp_session is a MAC of its request, so that a later bundle can be held against it and nothing is kept (ADR 0054). */
export function makeSessions(serverSecret: Uint8Array) {
  const mac = makeHmacSha256(hmacSha256(serverSecret, 'gpd/session/v1'));
  const of = (kid: string, requestId: string): string => mac(`${kid} ${requestId}`);
  return {
    of,
    /** A sibling host may have added a cookie, and a bound session has its root behind a dot. */
    proves(cookie: string | undefined, kid: string, requestId: string): boolean {
      const expected = Buffer.from(of(kid, requestId));
      const given = cookieValues(cookie, 'gp_session').map((value) => value.split('.', 1)[0] ?? '');
      return given.some((value) => equalBytes(Buffer.from(value), expected));
    },
  };
}
