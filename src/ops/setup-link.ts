import { hashSecret } from '../auth/credentials.ts';
import { type Clock, HOUR } from '../lib/clock.ts';
import { equalBytes, type Random } from '../lib/crypto.ts';

/**
 * The link of `gpd serve --setup` is valid once and for an hour. The browser that opens it gets a session.
 */

const SECRET_BYTES = 32;
const LIFE_MS = HOUR;

interface StoredSecret {
  /** Only the hash of a secret is stored. */
  readonly hash: string;
  readonly expiresAt: number;
}

export type SetupLink = ReturnType<typeof createSetupLink>['link'];

/** @returns the token of the link, which is not stored here */
export function createSetupLink(random: Random, clock: Clock) {
  const createSecret = () => {
    const secret = random(SECRET_BYTES).toString('base64url');
    return { secret, held: { hash: hashSecret(secret), expiresAt: clock() + LIFE_MS } };
  };
  const matches = (stored: StoredSecret | null, secret: string): boolean =>
    stored !== null &&
    clock() < stored.expiresAt &&
    equalBytes(Buffer.from(stored.hash), Buffer.from(hashSecret(secret)));
  const { secret: token, held: stored } = createSecret();
  let unused: StoredSecret | null = stored;
  let session: StoredSecret | null = null;
  const link = {
    isGood: (token: string): boolean => matches(unused, token),
    /** @returns the secret of the session, or null where the link is invalid, used or expired */
    exchange(token: string): string | null {
      if (!matches(unused, token)) return null;
      unused = null;
      const created = createSecret();
      session = created.held;
      return created.secret;
    },
    isSession: (secret: string): boolean => matches(session, secret),
  };
  return { token, link };
}
