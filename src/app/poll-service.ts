import { randomBytes } from 'node:crypto';
import type { Database } from '../db/engine.ts';
import { isWritable, readMeta, readRevision } from '../db/meta-store.ts';
import { createMasterKey, SERVER_SECRET, WrongMasterKey } from '../keys/master-key.ts';
import { SECOND } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';
import { every } from '../lib/jobs.ts';
import { opensSecret } from '../ops/escrow-files.ts';
import type { TenantDirectory } from '../tenants/directory.ts';
import { type DamagedTenant, readSnapshot, type SnapshotPage } from '../tenants/snapshot-store.ts';

/**
 * Reads changes every second, so that a running server sees those of the CLI within 5 s (contract section 5).
 */
const INTERVAL_MS = SECOND;
/** The loaded state is stale after this time (contract section 5), whether reads failed or hang. */
const STALE_MS = 5 * SECOND;

export interface PollOptions {
  /** After `keys rewrap` the file holds another key than the one this process started with. */
  readonly rereadMasterKey: () => Uint8Array;
  readonly onFault: (error: unknown) => void;
  readonly onRecovered?: () => void;
  /** Called for a tenant that was removed or is damaged, each time its rows change. */
  readonly onDamaged: (tenant: DamagedTenant) => void;
  /** Milliseconds between two polls. */
  readonly interval?: number | undefined;
}

interface Poll {
  readonly database: Database;
  readonly directory: TenantDirectory;
  readonly options: PollOptions;
  revision: number;
  readAt: number;
  writable: boolean;
}

/** A key that does not open the server's secret is wrong; otherwise only a tenant is damaged. */
async function applyPage(poll: Poll, page: SnapshotPage): Promise<readonly DamagedTenant[]> {
  const { database, directory } = poll;
  const masterKey = directory.masterKey();
  try {
    return directory.apply(page);
  } catch (error) {
    if (!(error instanceof WrongMasterKey)) throw error;
    const wrapped = (await readMeta(database, SERVER_SECRET)) ?? '';
    const key = opensSecret(masterKey, wrapped)
      ? masterKey
      : createMasterKey(poll.options.rereadMasterKey(), randomBytes);
    // After a rewrap between these reads, the next poll reads all of it.
    const hasMoved = (await readRevision(database, 'tenants')) !== page.revision;
    if (hasMoved || !opensSecret(key, wrapped)) throw error;
    return directory.apply(page, key);
  }
}

async function pollOnce(poll: Poll): Promise<void> {
  const startedAt = performance.now();
  const [page, writable] = await Promise.all([
    readSnapshot(poll.database, poll.revision),
    isWritable(poll.database),
  ]);
  poll.writable = writable;
  for (const tenant of await applyPage(poll, page)) poll.options.onDamaged(tenant);
  poll.revision = page.revision;
  // The time of the start counts: a later commit may be missing in what was read.
  poll.readAt = startedAt;
}

function unreadable(cause: unknown): never {
  throw new Unavailable('the database cannot be read', 1, { cause });
}

/** Loads all tenants once, then what changed. @throws {Error} when the first load fails */
export async function startPolling(database: Database, directory: TenantDirectory, options: PollOptions) {
  const poll: Poll = { database, directory, options, revision: -1, readAt: 0, writable: true };
  await pollOnce(poll);
  const { interval: ms = INTERVAL_MS, onFault, onRecovered } = options;
  const waiting: ((result: Promise<void>) => void)[] = [];
  const pollForAll = (): Promise<void> => {
    const result = pollOnce(poll);
    for (const answer of waiting.splice(0)) answer(result);
    return result;
  };
  const polling = every(pollForAll, { ms, timer: setInterval, onFault, onRecovered });
  return {
    /** Why this node is not ready: its tenants may be out of date, or the database is read-only. */
    notReadyReasons: (): string[] => [
      ...(performance.now() - poll.readAt > STALE_MS ? ['database: the last reload failed'] : []),
      ...(poll.writable ? [] : ['database: it takes no writes']),
    ],
    /**
     * Polls at once: a known caller named something that this node does not know yet, or this node changed
     * something itself. Simultaneous callers share one poll, which begins after their calls.
     * @throws {Unavailable} when the database cannot be read
     */
    refresh: () => polling.runNow().catch(unreadable),
    /**
     * Waits for the next poll without causing one, because strangers named something unknown. @throws
     * {Unavailable} when the database cannot be read
     */
    nextLook: () => new Promise<void>((answer) => waiting.push(answer)).catch(unreadable),
    stop: polling.stop,
  };
}
