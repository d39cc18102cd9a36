import { type ApiKey, hashSecret, isApiKeySecret } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import type { FindApiKey } from '../http/authorize.ts';
import { createReadWhole, refuseOver } from '../http/limiter.ts';
import { type Clock, DAY, isoTime, SECOND } from '../lib/clock.ts';
import { createRecent } from '../lib/collections.ts';
import { Refusal } from '../lib/errors.ts';
import { createApiKeyStore } from './api-key-store.ts';

/**
 * Finds API keys. Another process may have just created a key that this one does not know, so an unknown key
 * is refused only after the next look of the poll (contract 2, section 12; ADR 0096). Guessing causes no
 * look.
 */

/** Requests with unknown keys that may wait at the same time, per client and in all. */
const MAX_WAITING = 256;
const MAX_WAITING_IN_ALL = 1000;
const MAX_REMEMBERED = 10_000;

const tooManyWaiting = (): Refusal => new Refusal('rate-limited', { headers: { 'retry-after': '1' } });

export interface UnknownKeysDeps {
  readonly findKnownKey: (secret: string) => ApiKey | 'revoked' | null;
  /** Resolves once a look has ended that began after this call. @throws {Unavailable} */
  readonly nextLook: () => Promise<void>;
  /** Monotonic milliseconds, which a change of the clock does not affect. */
  readonly now: () => number;
}

/** @returns a function that finds a key by its secret; it returns null for an unknown or revoked key */
export function createUnknownKeys({ findKnownKey, nextLook, now }: UnknownKeysDeps) {
  /** Until the time stored here, a key with this hash is refused at once. */
  const refusedUntil = createRecent<number>(SECOND, MAX_REMEMBERED, now);
  const ofClient = createReadWhole(MAX_WAITING);
  const inAll = createReadWhole(MAX_WAITING_IN_ALL);

  return async (secret: string, client: string, secondsBlocked = 0): Promise<ApiKey | null> => {
    const known = findKnownKey(secret);
    if (known === 'revoked') return null;
    if (known || !isApiKeySecret(secret)) return known;
    refuseOver(secondsBlocked);
    const hash = hashSecret(secret);
    if ((refusedUntil.get(hash) ?? 0) > now()) return null;
    await inAll('all', () => ofClient(client, nextLook, tooManyWaiting), tooManyWaiting);
    const found = findKnownKey(secret);
    if (found && found !== 'revoked') return found;
    refusedUntil.set(hash, now() + SECOND);
    return null;
  };
}

/**
 * Finds a key by its secret, and writes the day of its last use once a day. The
 * request does not wait for that write; if it fails, the next call tries again.
 */
export function createKeyFinder(
  database: Database,
  find: ReturnType<typeof createUnknownKeys>,
  clock: Clock,
): FindApiKey {
  /** The day of the last use by the id of a key, counted from 1970. */
  const notedDays = new Map<string, number>();
  const store = createApiKeyStore(database);
  return async (secret, client, secondsBlocked) => {
    const key = await find(secret, client, secondsBlocked);
    if (!key) return null;
    const now = clock();
    const today = Math.floor(now / DAY);
    if (notedDays.get(key.id) === today) return key;
    notedDays.set(key.id, today);
    const day = isoTime(now).slice(0, 10);
    if (key.lastUsedOn !== day) store.noteUse(key.kid, key.id, day).catch(() => notedDays.delete(key.id));
    return key;
  };
}
