import type { Database } from '../db/db.ts';
import type { FindApiKey } from '../http/caller.ts';
import { type Clock, isoTime } from '../lib/clock.ts';
import { makeApiKeyStore } from './api-key-store.ts';
import type { makeUnknownKeys } from './unknown-keys-service.ts';

/**
 * Finds a key by its secret and notes its use to the day: one write per key and day, which the request does not wait for; a failed one is
 * tried with the next call.
 */
export function makeKeyFinder(
  database: Database,
  find: ReturnType<typeof makeUnknownKeys>,
  clock: Clock,
): FindApiKey {
  const noted = new Map<string, string>();
  const store = makeApiKeyStore(database);
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
