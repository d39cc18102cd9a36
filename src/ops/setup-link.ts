import { hashSecret } from '../auth/credentials.ts';
import { type Clock, HOUR } from '../lib/clock.ts';
import { equalBytes, type Random } from '../lib/crypto.ts';

/** The link of `gpd serve --setup`: good once and for an hour. It buys a session for the browser that follows it. */

const SECRET_BYTES = 32;
const LIFE_MS = HOUR;

interface Held {
  /** All that is kept of a secret. */
  readonly hash: string;
  readonly expiresAt: number;
}

export type SetupLink = ReturnType<typeof createSetupLink>['link'];

/** @returns the token of the link, which nothing here holds on to */
export function createSetupLink(random: Random, clock: Clock) {
  const make = () => {
    const secret = random(SECRET_BYTES).toString('base64url');
    return { secret, held: { hash: hashSecret(secret), expiresAt: clock() + LIFE_MS } };
  };
  const opens = (held: Held | null, secret: string): boolean =>
    held !== null &&
    clock() < held.expiresAt &&
    equalBytes(Buffer.from(held.hash), Buffer.from(hashSecret(secret)));
  const { secret: token, held } = make();
  let unused: Held | null = held;
  let session: Held | null = null;
  const link = {
    isGood: (token: string): boolean => opens(unused, token),
    /** @returns the secret of the one session, or null where the link is wrong, used or too old */
    exchange(token: string): string | null {
      if (!opens(unused, token)) return null;
      unused = null;
      const made = make();
      session = made.held;
      return made.secret;
    },
    isSession: (secret: string): boolean => opens(session, secret),
  };
  return { token, link };
}
