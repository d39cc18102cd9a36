import { setTimeout as delay } from 'node:timers/promises';
import { type ApiKey, hashSecret, isApiKeySecret } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import type { FindApiKey } from '../http/authorize.ts';
import { refuseOver } from '../http/limiter.ts';
import { type Clock, isoTime, SECOND } from '../lib/clock.ts';
import { createRecent } from '../lib/collections.ts';
import { createApiKeyStore } from './api-key-store.ts';

/**
 * Finds API keys. Another process may have just created a key that this one does not know, so the
 * database is read again before a key is refused (contract 2, section 12). To keep guessing cheap, each
 * client causes at most one read per second; its other unknown keys wait for the next read and share it.
 */

const PAUSE_MS = SECOND;
/** Unknown keys that may wait for a read at the same time, per client and in all. */
const MAX_WAITING = 256;
const MAX_WAITING_IN_ALL = 1000;
const MAX_REMEMBERED = 10_000;

interface Bucket {
  /** The next read may start at this time. */
  opensAt: number;
  next: Promise<void> | null;
  waiting: number;
}

export interface UnknownKeysDeps {
  readonly findKnownKey: (secret: string) => ApiKey | 'revoked' | null;
  /** Reads all changes that were committed before this call. @throws {Unavailable} */
  readonly refresh: () => Promise<void>;
  /** Monotonic milliseconds, which a change of the clock does not affect. */
  readonly now: () => number;
  readonly sleep?: (ms: number) => Promise<void>;
}

function createBuckets(now: () => number): (client: string) => Bucket {
  const buckets = createRecent<Bucket>(2 * PAUSE_MS, MAX_REMEMBERED, now);
  const sharedBucket: Bucket = { opensAt: 0, next: null, waiting: 0 };
  return (client) => {
    const found = buckets.get(client);
    if (found) return found;
    const bucket: Bucket = { opensAt: 0, next: null, waiting: 0 };
    // When more than ten thousand clients are remembered, all further ones share a bucket.
    return buckets.set(client, bucket) ? bucket : sharedBucket;
  };
}

/** @returns a function that finds a key by its secret; it returns null for an unknown or revoked key */
export function createUnknownKeys(deps: UnknownKeysDeps) {
  const { findKnownKey, refresh, now, sleep = delay } = deps;
  const bucketOf = createBuckets(now);
  /** Until the time stored here, a key with this hash is refused without another read. */
  const refused = createRecent<number>(PAUSE_MS, MAX_REMEMBERED, now);
  const pendingLookups = new Map<string, Promise<ApiKey | null>>();

  function startRead(bucket: Bucket): Promise<void> {
    bucket.opensAt = now() + PAUSE_MS;
    return refresh();
  }

  function waitForRead(bucket: Bucket): Promise<void> {
    const wait = bucket.opensAt - now();
    if (wait <= 0) return startRead(bucket);
    bucket.next ??= sleep(wait).then(() => {
      bucket.next = null;
      return startRead(bucket);
    });
    return bucket.next;
  }

  async function lookUpKey(secret: string, hash: string, client: string): Promise<ApiKey | null> {
    const bucket = bucketOf(client);
    if (bucket.waiting >= MAX_WAITING || pendingLookups.size >= MAX_WAITING_IN_ALL)
      refuseOver(PAUSE_MS / SECOND);
    bucket.waiting += 1;
    try {
      await waitForRead(bucket);
    } finally {
      bucket.waiting -= 1;
    }
    const found = findKnownKey(secret);
    const key = found === 'revoked' ? null : found;
    // A client with a valid key is not guessing, so its next unknown key need not wait.
    if (key) bucket.opensAt = 0;
    else refused.set(hash, now() + PAUSE_MS);
    return key;
  }

  return async (secret: string, client: string, secondsBlocked = 0): Promise<ApiKey | null> => {
    const key = findKnownKey(secret);
    if (key === 'revoked') return null;
    if (key || !isApiKeySecret(secret)) return key;
    refuseOver(secondsBlocked);
    const hash = hashSecret(secret);
    if ((refused.get(hash) ?? 0) > now()) return null;
    const found = pendingLookups.get(hash);
    if (found) return found;
    const lookup = lookUpKey(secret, hash, client).finally(() => pendingLookups.delete(hash));
    pendingLookups.set(hash, lookup);
    return lookup;
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
  const notedDays = new Map<string, string>();
  const store = createApiKeyStore(database);
  return async (secret, client, secondsBlocked) => {
    const key = await find(secret, client, secondsBlocked);
    if (!key) return null;
    const day = isoTime(clock()).slice(0, 10);
    if (key.lastUsedOn !== day && notedDays.get(key.id) !== day) {
      notedDays.set(key.id, day);
      store.noteUse(key.kid, key.id, day).catch(() => notedDays.delete(key.id));
    }
    return key;
  };
}
