import { setTimeout as delay } from 'node:timers/promises';
import { createLocalJWKSet, errors, type JWK, type JWTVerifyGetKey } from 'jose';
import { HOUR, MINUTE, SECOND } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';

/**
 * An identity provider's keys as this process knows them: fetched when a token needs them, without a timer, and kept while
 * the provider is away. jose picks and imports them; its own cache (`createRemoteJWKSet`) uses the machine's clock, and
 * forgets keys whose age is over though there are no others.
 */

/** From this age on keys are looked up again while the request continues. */
const REFRESH_MS = 10 * MINUTE;
/** From this age on a request waits for it: a key that was withdrawn is not believed for longer while there is an answer. */
const MAX_AGE_MS = HOUR;
/** Two fetches are at least this far apart, whatever strangers send; a request that needs one waits for it. */
const COOLDOWN_MS = SECOND;
/** After a failure, a refresh that nobody waits for is tried again so much later. */
const RETRY_MS = 30 * SECOND;

export interface IssuerKeysOptions {
  /** Milliseconds that no clock change touches: by a clock that is set back, a key that was withdrawn would be believed for longer. */
  readonly monotonic?: (() => number) | undefined;
  /** @throws when they cannot be read */
  readonly fetchKeys: () => Promise<readonly JWK[]>;
  /** Told once when fetching begins to fail and when its reason changes. */
  readonly onFault: (error: unknown) => void;
}

interface Known {
  readonly keys: JWTVerifyGetKey;
  readonly fetchedAt: number;
}

export function makeIssuerKeys(options: IssuerKeysOptions): JWTVerifyGetKey {
  const { monotonic = () => performance.now(), fetchKeys, onFault } = options;
  let known: Known | null = null;
  let triedAt = Number.NEGATIVE_INFINITY;
  let fault: string | null = null;
  let next: Promise<void> | null = null;

  async function fetchNow(): Promise<void> {
    triedAt = monotonic();
    try {
      known = { keys: createLocalJWKSet({ keys: [...(await fetchKeys())] }), fetchedAt: triedAt };
      fault = null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown';
      if (reason !== fault) onFault(error);
      fault = reason;
    }
  }

  /** One fetch at a time, for all who wait; never rejects. */
  function refresh(): Promise<void> {
    const fetched = async (): Promise<void> => {
      const rest = Math.min(triedAt + COOLDOWN_MS - monotonic(), COOLDOWN_MS);
      if (rest > 0) await delay(rest, undefined, { ref: false });
      await fetchNow();
    };
    next ??= fetched().finally(() => {
      next = null;
    });
    return next;
  }

  async function current(): Promise<Known> {
    const age = known ? monotonic() - known.fetchedAt : Number.POSITIVE_INFINITY;
    const mayRetry = fault === null || monotonic() - triedAt >= RETRY_MS;
    if (!known || (age >= MAX_AGE_MS && mayRetry)) await refresh();
    else if (age >= REFRESH_MS && mayRetry) void refresh();
    if (!known) throw new Unavailable('the keys of the identity provider cannot be read');
    return known;
  }

  return async (header, token) => {
    const askedAt = monotonic();
    const before = await current();
    try {
      return await before.keys(header, token);
    } catch (error) {
      const isUnknown = error instanceof errors.JWKSNoMatchingKey && header.kid !== undefined;
      if (!isUnknown || before.fetchedAt >= askedAt) throw error;
      // The provider may have begun to sign with a new key.
      await refresh();
      return (known ?? before).keys(header, token);
    }
  };
}
