import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, Unavailable } from '../lib/errors.ts';
import { createEmptyFile, refuseLink } from './own-files.ts';
import { execute, promised, requireSqlite, SqliteUnloadable } from './sqlite-client.ts';

/**
 * Several processes write one file of the data directory: one at a time, behind the lock of `PATH.lock`. A
 * kernel lock on an empty file ends with its process. Node has no API for it, so SQLite takes it: a read
 * transaction shares the file, an exclusive one excludes everyone (sqlite.org/lockingv3.html). The lock is
 * lost if its process opens and closes the file itself.
 */

const require = createRequire(import.meta.url);

/** A shared lock waits longer: while an exclusive lock is pending, no new shared lock is granted. */
const LOCK_SQL = {
  shared: 'PRAGMA busy_timeout=2000; BEGIN; SELECT 1 FROM sqlite_master',
  // No journal file: nothing is ever written.
  exclusive: 'PRAGMA busy_timeout=500; PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE',
} as const;

export type Release = () => Promise<void>;

/**
 * Null: another process has the lock.
 * @throws {Error} the driver's error when the file cannot be opened or is not empty
 */
export async function lockFile(path: string, mode: keyof typeof LOCK_SQL): Promise<Release | null> {
  requireSqlite();
  refuseLink(path);
  // SQLite opens a read-only file for reading, and an exclusive transaction would then only share it.
  if (mode === 'exclusive') accessSync(path, constants.W_OK);
  const { Database, OPEN_READWRITE } = require('sqlite3') as typeof import('sqlite3');
  const connection = await new Promise<InstanceType<typeof Database>>((resolve, reject) => {
    const opened = new Database(path, OPEN_READWRITE, (error) => (error ? reject(error) : resolve(opened)));
  });
  const release: Release = () => promised((done) => connection.close(done));
  try {
    await execute(connection, LOCK_SQL[mode]);
    return release;
  } catch (error) {
    await release();
    if (errorCode(error as Error) === 'SQLITE_BUSY') return null;
    throw error;
  }
}

const LOCK_TRIES = 20;
const LOCK_WAIT_MS = 25;

/** Queues callers inside this process; the kernel's lock works only between processes. */
const turns = new Map<string, Promise<unknown>>();

export function serialise<T>(path: string, work: () => Promise<T>): Promise<T> {
  const turn = (turns.get(path) ?? Promise.resolve()).then(work, work);
  turns.set(
    path,
    turn.catch(() => {}),
  );
  return turn;
}

/**
 * PostgreSQL without SQLite's module has no lock: two processes could then write one line number twice, which
 * is reported later.
 */
async function acquireLock(path: string): Promise<Release> {
  const lock = `${path}.lock`;
  createEmptyFile(lock);
  for (let i = 0; i < LOCK_TRIES; i += 1) {
    const release = await lockFile(lock, 'exclusive').catch((error: unknown) => {
      if (error instanceof SqliteUnloadable) return () => Promise.resolve();
      throw error;
    });
    if (release) return release;
    await sleep(LOCK_WAIT_MS);
  }
  throw new Unavailable(`${path} is in use`);
}

export const withFileLock = <T>(path: string, work: () => Promise<T>): Promise<T> =>
  serialise(path, async () => {
    const release = await acquireLock(path);
    try {
      return await work();
    } finally {
      await release();
    }
  });
