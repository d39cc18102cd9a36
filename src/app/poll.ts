import { randomBytes } from 'node:crypto';
import { type MasterKey, makeMasterKey, WrongMasterKey } from '../keys/master-key.ts';
import { SECOND } from '../lib/clock.ts';
import type { Database } from '../storage/db.ts';
import { readSnapshot } from '../storage/snapshot.ts';
import type { LiveDirectory } from './directory.ts';

/** What the CLI changes a running server sees within 5 s (contract section 5): it looks every second. */
const INTERVAL_MS = SECOND;
const STALE_AFTER = 5;

export interface Polling {
  /** Several looks in a row failed: what is in memory may be old. */
  stale(): boolean;
  /** The master key of now: `keys rewrap` may have changed it since the start. */
  masterKey(): MasterKey;
  stop(): Promise<void>;
}

export interface PollOptions {
  /** After `keys rewrap` the file holds another key than the one this process started with. */
  readonly rereadMasterKey: () => Uint8Array;
  readonly onFault: (error: unknown) => void;
}

/** Loads all tenants once, then what changed. @throws when the first load fails */
export async function startPolling(
  database: Database,
  directory: LiveDirectory,
  firstKey: MasterKey,
  options: PollOptions,
): Promise<Polling> {
  let masterKey = firstKey;
  let revision = -1;
  let failures = 0;

  async function look(): Promise<void> {
    const page = await readSnapshot(database, revision);
    try {
      directory.apply(page, masterKey);
    } catch (error) {
      if (!(error instanceof WrongMasterKey)) throw error;
      masterKey = makeMasterKey(options.rereadMasterKey(), randomBytes);
      directory.apply(page, masterKey);
    }
    revision = page.revision;
  }

  await look();
  let running: Promise<void> = Promise.resolve();
  let busy = false;
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    running = look()
      .then(
        () => {
          failures = 0;
        },
        (error: unknown) => {
          failures += 1;
          if (failures === 1) options.onFault(error);
        },
      )
      .finally(() => {
        busy = false;
      });
  }, INTERVAL_MS);
  return {
    stale: () => failures >= STALE_AFTER,
    masterKey: () => masterKey,
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
