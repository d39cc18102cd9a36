import { setTimeout as delay } from 'node:timers/promises';
import { type ApiKey, hashSecret, isApiKeySecret } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import { refuseOver } from '../http/limiter.ts';
import type { FindApiKey } from '../http/register.ts';
import { type Clock, isoTime, SECOND } from '../lib/clock.ts';
import { createRecent } from '../lib/collections.ts';
import { createApiKeyStore } from './api-key-store.ts';

/**
 * An API key that this process does not know may have been made a moment ago, by another one: the database is read once
 * more before it is refused (contract 2, section 12). Guessing costs little: a client causes one read a second, further
 * new keys wait for the next one, and callers at one time share it.
 */

const PAUSE_MS = SECOND;
/** Different keys of one client that wait at one time, and of all clients. */
const MAX_WAITING = 256;
const MAX_WAITING_IN_ALL = 1000;
const MAX_REMEMBERED = 10_000;

interface Bucket {
  /** When the next read may begin. */
  opensAt: number;
  next: Promise<void> | null;
  waiting: number;
}

export interface UnknownKeysDeps {
  readonly known: (secret: string) => ApiKey | 'revoked' | null;
  /** Reads what changed in the database before this call. @throws {Unavailable} */
  readonly refresh: () => Promise<void>;
  /** Milliseconds that no clock change touches. */
  readonly now: () => number;
  readonly sleep?: (ms: number) => Promise<void>;
}

function createBuckets(now: () => number): (client: string) => Bucket {
  const buckets = createRecent<Bucket>(2 * PAUSE_MS, MAX_REMEMBERED, now);
  const crowd: Bucket = { opensAt: 0, next: null, waiting: 0 };
  return (client) => {
    const found = buckets.get(client);
    if (found) return found;
    const made: Bucket = { opensAt: 0, next: null, waiting: 0 };
    // Past ten thousand clients a second they share one.
    return buckets.set(client, made) ? made : crowd;
  };
}

/** @returns finds a key by its secret for a client; null for one that nobody has, and for a revoked one */
export function createUnknownKeys(deps: UnknownKeysDeps) {
  const { known, refresh, now, sleep = delay } = deps;
  const bucketOf = createBuckets(now);
  /** Until when a key, by its hash, is refused without another look. */
  const refused = createRecent<number>(PAUSE_MS, MAX_REMEMBERED, now);
  const underWay = new Map<string, Promise<ApiKey | null>>();

  function read(bucket: Bucket): Promise<void> {
    bucket.opensAt = now() + PAUSE_MS;
    return refresh();
  }

  function nextRead(bucket: Bucket): Promise<void> {
    const wait = bucket.opensAt - now();
    if (wait <= 0) return read(bucket);
    bucket.next ??= sleep(wait).then(() => {
      bucket.next = null;
      return read(bucket);
    });
    return bucket.next;
  }

  async function look(secret: string, hash: string, client: string): Promise<ApiKey | null> {
    const bucket = bucketOf(client);
    if (bucket.waiting >= MAX_WAITING || underWay.size >= MAX_WAITING_IN_ALL) refuseOver(PAUSE_MS / SECOND);
    bucket.waiting += 1;
    try {
      await nextRead(bucket);
    } finally {
      bucket.waiting -= 1;
    }
    const found = known(secret);
    const key = found === 'revoked' ? null : found;
    // A caller with a valid key does not guess.
    if (key) bucket.opensAt = 0;
    else refused.set(hash, now() + PAUSE_MS);
    return key;
  }

  return async (secret: string, client: string, spent = 0): Promise<ApiKey | null> => {
    const key = known(secret);
    if (key === 'revoked') return null;
    if (key || !isApiKeySecret(secret)) return key;
    refuseOver(spent);
    const hash = hashSecret(secret);
    if ((refused.get(hash) ?? 0) > now()) return null;
    const found = underWay.get(hash);
    if (found) return found;
    const looking = look(secret, hash, client).finally(() => underWay.delete(hash));
    underWay.set(hash, looking);
    return looking;
  };
}

/**
 * Finds a key by its secret and notes its use to the day: one write per key and day, which the request does not wait for; a failed one is
 * tried with the next call.
 */
export function createKeyFinder(
  database: Database,
  find: ReturnType<typeof createUnknownKeys>,
  clock: Clock,
): FindApiKey {
  const noted = new Map<string, string>();
  const store = createApiKeyStore(database);
  return async (secret, client, spent) => {
    const key = await find(secret, client, spent);
    if (!key) return null;
    const day = isoTime(clock()).slice(0, 10);
    if (key.lastUsedOn !== day && noted.get(key.id) !== day) {
      noted.set(key.id, day);
      store.touch(key.kid, key.id, day).catch(() => noted.delete(key.id));
    }
    return key;
  };
}
