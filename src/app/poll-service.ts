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

/** Looks every second for changes, so that a running server sees those of the CLI within 5 s (contract section 5). */
const INTERVAL_MS = SECOND;
/** The loaded state is stale after this time (contract section 5), whether reads failed or hang. */
const STALE_MS = 5 * SECOND;

export interface PollOptions {
  /** After `keys rewrap` the file holds another key than the one this process started with. */
  readonly rereadMasterKey: () => Uint8Array;
  readonly onFault: (error: unknown) => void;
  readonly onRecovered?: () => void;
  /** A tenant that is not served any more, or not at all; told with each change of its rows. */
  readonly onDamaged: (tenant: DamagedTenant) => void;
  /** Milliseconds from one look to the next. */
  readonly interval?: number | undefined;
}

interface Poll {
  readonly database: Database;
  readonly directory: TenantDirectory;
  readonly options: PollOptions;
  revision: number;
  lookedAt: number;
  writable: boolean;
}

/** The server's own secret says whether the key is wrong, or a single tenant is damaged. */
async function apply(poll: Poll, page: SnapshotPage): Promise<readonly DamagedTenant[]> {
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
    // A rewrap between these reads: the next look sees all of it.
    const moved = (await readRevision(database, 'tenants')) !== page.revision;
    if (moved || !opensSecret(key, wrapped)) throw error;
    return directory.apply(page, key);
  }
}

async function look(poll: Poll): Promise<void> {
  const startedAt = performance.now();
  const [page, writable] = await Promise.all([
    readSnapshot(poll.database, poll.revision),
    isWritable(poll.database),
  ]);
  poll.writable = writable;
  for (const tenant of await apply(poll, page)) poll.options.onDamaged(tenant);
  poll.revision = page.revision;
  // The time of the start counts: a later commit may be missing in what was read.
  poll.lookedAt = startedAt;
}

function unreadable(cause: unknown): never {
  throw new Unavailable('the database cannot be read', 1, { cause });
}

/** Loads all tenants once, then what changed. @throws {Error} when the first load fails */
export async function startPolling(database: Database, directory: TenantDirectory, options: PollOptions) {
  const poll: Poll = { database, directory, options, revision: -1, lookedAt: 0, writable: true };
  await look(poll);
  const { interval: ms = INTERVAL_MS, onFault, onRecovered } = options;
  const waiting: ((result: Promise<void>) => void)[] = [];
  const lookForAll = (): Promise<void> => {
    const result = look(poll);
    for (const answer of waiting.splice(0)) answer(result);
    return result;
  };
  const looks = every(lookForAll, { ms, timer: setInterval, onFault, onRecovered });
  return {
    /** Why this node is not ready: its tenants may be out of date, or the database is read-only. */
    notReadyReasons: (): string[] => [
      ...(performance.now() - poll.lookedAt > STALE_MS ? ['database: the last reload failed'] : []),
      ...(poll.writable ? [] : ['database: it takes no writes']),
    ],
    /**
     * Looks at once, for what a known caller names and this node does not know yet, and for what this node changed itself.
     * Callers at one time share the look, which begins after their calls. @throws {Unavailable} when the database cannot be read
     */
    refresh: () => looks.runNow().catch(unreadable),
    /** Waits for the next look, and causes none: for what strangers name. @throws {Unavailable} when the database cannot be read */
    nextLook: () => new Promise<void>((answer) => waiting.push(answer)).catch(unreadable),
    stop: looks.stop,
  };
}
