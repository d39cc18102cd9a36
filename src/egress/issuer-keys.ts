import { setTimeout as delay } from 'node:timers/promises';
import { createLocalJWKSet, errors, type JWK, type JWTVerifyGetKey } from 'jose';
import { HOUR, MINUTE, SECOND } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';

/**
 * Caches an identity provider's keys: fetched when a token needs them, without a timer, and kept while the
 * provider is unreachable. jose selects and imports them. Its own cache (`createRemoteJWKSet`) uses the
 * machine's clock, and drops old keys even without new ones (https://github.com/panva/jose).
 */

/** From this age on, keys are fetched again while the request continues. */
const REFRESH_MS = 10 * MINUTE;
/**
 * From this age on, a request waits for the fetch, so that a withdrawn key is not trusted for longer while
 * the provider answers.
 */
const MAX_AGE_MS = HOUR;
/** Two fetches are at least this far apart, whatever clients send; a request that needs one waits for it. */
const COOLDOWN_MS = SECOND;
/** After a failure, a refresh in the background is tried again after this time. */
const RETRY_MS = 30 * SECOND;

export interface IssuerKeysOptions {
  /**
   * Milliseconds that no clock change affects: if the clock were set back, a withdrawn key would be trusted
   * for longer.
   */
  readonly monotonic?: (() => number) | undefined;
  /** @throws {Error} when the keys cannot be read */
  readonly fetchKeys: () => Promise<readonly JWK[]>;
  /** Called once when fetching begins to fail, and when its reason changes. */
  readonly onFault: (error: unknown) => void;
}

interface FetchedKeys {
  readonly keys: JWTVerifyGetKey;
  readonly fetchedAt: number;
}

export function createIssuerKeys(options: IssuerKeysOptions): JWTVerifyGetKey {
  const { monotonic = () => performance.now(), fetchKeys, onFault } = options;
  let cached: FetchedKeys | null = null;
  let triedAt = Number.NEGATIVE_INFINITY;
  let fault: string | null = null;
  let next: Promise<void> | null = null;

  async function fetchNow(): Promise<void> {
    triedAt = monotonic();
    try {
      cached = { keys: createLocalJWKSet({ keys: [...(await fetchKeys())] }), fetchedAt: triedAt };
      fault = null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown';
      if (reason !== fault) onFault(error);
      fault = reason;
    }
  }

  /** Runs one fetch at a time, for all callers; never rejects. */
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

  async function current(): Promise<FetchedKeys> {
    const age = cached ? monotonic() - cached.fetchedAt : Number.POSITIVE_INFINITY;
    const mayRetry = fault === null || monotonic() - triedAt >= RETRY_MS;
    if (!cached || (age >= MAX_AGE_MS && mayRetry)) await refresh();
    else if (age >= REFRESH_MS && mayRetry) void refresh();
    if (!cached) throw new Unavailable('the keys of the identity provider cannot be read');
    return cached;
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
      return (cached ?? before).keys(header, token);
    }
  };
}
