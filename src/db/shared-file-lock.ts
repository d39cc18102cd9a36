import { accessSync, closeSync, constants, fchownSync, lstatSync, openSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Unavailable } from '../lib/errors.ts';
import { errorCode } from './availability.ts';
import { refuseLink, syncPath } from './durable-files.ts';
import { requireSqlite, SqliteUnloadable } from './sqlite-client.ts';
import { execute, told } from './sqlite-prepared.ts';

/** A file of the data directory that several processes write: one at a time, behind the lock of `PATH.lock`. */

const LOCK_TRIES = 20;
const LOCK_WAIT_MS = 25;

/** Within a process: the kernel's lock is between processes. */
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
 * Owned as its directory is: root at the command line must not take a file from the server. By its descriptor: by its name, the
 * owner of the directory could have root give away another file.
 */
export function ownAsDirectory(descriptor: number, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  fchownSync(descriptor, uid, gid);
}

/** A link is there too, wherever it leads. */
export const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** A new file; one that is there stays as it is. @throws {LinkFound} */
export function makeEmpty(path: string): void {
  refuseLink(path);
  if (isThere(path)) return;
  let descriptor: number;
  try {
    descriptor = openSync(path, 'wx', 0o600);
  } catch (error) {
    // Another process was first.
    if (errorCode(error as Error) === 'EEXIST') return;
    throw error;
  }
  try {
    ownAsDirectory(descriptor, path);
  } finally {
    closeSync(descriptor);
  }
  syncPath(dirname(path));
}

/** On PostgreSQL without SQLite's module nobody holds it: two processes at one moment would give one number twice, which is reported. */
async function lockOf(path: string): Promise<Release> {
  const lock = `${path}.lock`;
  makeEmpty(lock);
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

export const locked = <T>(path: string, work: () => Promise<T>): Promise<T> =>
  serialise(path, async () => {
    const release = await lockOf(path);
    try {
      return await work();
    } finally {
      await release();
    }
  });

/**
 * A kernel lock on an empty file, released when its process ends. Node has no API for it, so SQLite takes it: a read
 * transaction shares the file, an exclusive transaction excludes everyone (sqlite.org/lockingv3.html). A process that holds
 * one must not open and close the file itself: that drops the lock (docs/adr/0019).
 */

const require = createRequire(import.meta.url);

/** A shared lock waits longer: while an exclusive lock is pending, no new shared lock is granted. */
const TAKE = {
  shared: 'PRAGMA busy_timeout=2000; BEGIN; SELECT 1 FROM sqlite_master',
  // No journal file: nothing is ever written.
  exclusive: 'PRAGMA busy_timeout=500; PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE',
} as const;

export type Release = () => Promise<void>;

/** Null: another process holds it. @throws the driver's error when the file cannot be opened or is not empty */
export async function lockFile(path: string, how: keyof typeof TAKE): Promise<Release | null> {
  requireSqlite();
  refuseLink(path);
  // SQLite opens what it may not write for reading, and an exclusive transaction on that only shares it.
  if (how === 'exclusive') accessSync(path, constants.W_OK);
  const { Database, OPEN_READWRITE } = require('sqlite3') as typeof import('sqlite3');
  const connection = await new Promise<InstanceType<typeof Database>>((resolve, reject) => {
    const opened = new Database(path, OPEN_READWRITE, (error) => (error ? reject(error) : resolve(opened)));
  });
  const release: Release = () => told((done) => connection.close(done));
  try {
    await execute(connection, TAKE[how]);
    return release;
  } catch (error) {
    await release();
    if (errorCode(error as Error) === 'SQLITE_BUSY') return null;
    throw error;
  }
}
