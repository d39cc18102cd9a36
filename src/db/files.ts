import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { HOUR } from '../lib/clock.ts';
import { driverError, errorCode, Unavailable } from '../lib/errors.ts';
import type { Database } from './engine.ts';
import { rowsOf } from './sql.ts';
import { execute, promised, requireSqlite, SqliteUnloadable } from './sqlite-client.ts';

/** Writes files whole or not at all, whatever happens in between; also staging files and file locks. */

/**
 * A directory that only its owner can read, with its parents. They are made one by one: Node's recursive
 * mkdir never ends where a file system denies a parent that exists (procfs).
 */
export function createFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  const parent = dirname(path);
  if (parent !== path) createFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process was first.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

export class LinkFound extends Error {
  override readonly name = 'LinkFound';

  constructor(path: string) {
    super(`${path} is a symbolic link: gpd follows none in its data directory; put the file itself there`);
  }
}

/**
 * The data directory belongs to the server's user, and commands may run as root: a link of that user must not
 * lead root to another file.
 * @throws {LinkFound}
 */
export function refuseLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) throw new LinkFound(path);
}

/** Flags that open a file and no link. */
export const NO_LINK = constants.O_NOFOLLOW;

/** A file of the data directory; null: missing. @throws {LinkFound} */
export function readOwnFile(path: string): Buffer | null {
  refuseLink(path);
  if (!existsSync(path)) return null;
  const handle = openSync(path, constants.O_RDONLY | NO_LINK);
  try {
    return readFileSync(handle);
  } finally {
    closeSync(handle);
  }
}

export function syncPath(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Gives a finished temporary file its name. @throws {Error} EEXIST rather than overwrite */
export function publishFile(temporary: string, path: string): void {
  linkSync(temporary, path);
  unlinkSync(temporary);
  syncPath(dirname(path));
}

/** A name in the same folder that nobody can guess. */
export const unguessable = (path: string): string => `${path}.${randomBytes(8).toString('hex')}.tmp`;

/**
 * Writes a file of mode 0600, whole or not at all. Its directory may be one that others write to: the file is new, of this
 * user, and `path` is this very file afterwards.
 * @param place gives the temporary file its name
 */
export function writePrivate(path: string, content: string | Uint8Array, place: (temporary: string) => void) {
  const temporary = unguessable(path);
  const handle = openSync(temporary, 'wx', 0o600);
  try {
    fchmodSync(handle, 0o600);
    const temporaryStat = fstatSync(handle);
    if (temporaryStat.uid !== (process.geteuid?.() ?? temporaryStat.uid))
      throw new Error(`${path} would belong to user ${temporaryStat.uid}: choose another directory`);
    writeFileSync(handle, content);
    fsyncSync(handle);
    place(temporary);
    const placed = lstatSync(path);
    if (placed.ino !== temporaryStat.ino || placed.dev !== temporaryStat.dev)
      throw new Error(`${path} is not the file that gpd wrote: others may write to ${dirname(path)}`);
  } finally {
    closeSync(handle);
    rmSync(temporary, { force: true });
  }
  syncPath(dirname(path));
}

/** Puts a file of mode 0600 in place of an older one. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  writePrivate(path, content, (temporary) => renameSync(temporary, path));
}

const STAGING = /^staging-(\d+)-/;
/** No backup and no restore takes so long. */
const ABANDONED_MS = 12 * HOUR;

/** Folders and files that this process removes when it is interrupted. */
const temporaryPaths = new Set<string>();

export function temporaryFile(path: string): string {
  temporaryPaths.add(path);
  return path;
}

/**
 * A file of the data directory that lives only while this process works on it. It gets a separate directory:
 * otherwise SQLite, which opens files late and in a thread, could create it again after its removal. {@link
 * removeStaging} ends it.
 */
export function stagingFile(dataDir: string, name: string): string {
  return join(temporaryFile(mkdtempSync(join(dataDir, `staging-${process.pid}-`))), name);
}

const remove = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 3 });

export function removeStaging(file: string): void {
  remove(dirname(file));
  temporaryPaths.delete(dirname(file));
}

export function removeTemporaryFiles(): void {
  for (const path of temporaryPaths) remove(path);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Process ids are reused: in a container every backup and restore may have the same one. */
function isAbandoned(path: string, name: string): boolean {
  const pid = Number(STAGING.exec(name)?.[1] ?? 0);
  if (pid === 0 || temporaryPaths.has(path)) return false;
  if (pid === process.pid || !isAlive(pid)) return true;
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && Date.now() - stat.mtimeMs > ABANDONED_MS;
}

/** Deletes what a killed backup or restore left behind: an unencrypted copy of the database. */
export function removeAbandonedStaging(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  for (const name of readdirSync(dataDir)) {
    const path = join(dataDir, name);
    if (isAbandoned(path, name)) remove(path);
  }
}

/** Copies the database as of one moment into a new file without free pages. Writers continue meanwhile. */
export async function copyInto(database: Database, file: string): Promise<void> {
  await database.read.raw('VACUUM INTO ?', [file]);
}

/** Problems of the file in SQLite's words; at most ten. */
export async function quickCheck(database: Database): Promise<readonly string[]> {
  const rows = rowsOf<{ quick_check: string }>(await database.read.raw('PRAGMA quick_check(10)'));
  return rows.map((row) => row.quick_check).filter((text) => text !== 'ok');
}

export async function pragma(read: Knex, text: string): Promise<unknown> {
  const [row] = rowsOf<Record<string, unknown>>(await read.raw(`PRAGMA ${text}`));
  return row && Object.values(row)[0];
}

/** Bytes on disk; PostgreSQL only. */
export async function databaseSize({ read }: Database): Promise<number> {
  const sql = 'SELECT pg_database_size(current_database()) AS bytes';
  return Number(rowsOf<{ bytes: number }>(await read.raw(sql))[0]?.bytes);
}

/** Bytes of the pages in use: the size of a copy. */
export async function usedBytes(database: Database): Promise<number> {
  const { kind, read } = database;
  if (kind === 'postgres') return databaseSize(database);
  const usedPages = Number(await pragma(read, 'page_count')) - Number(await pragma(read, 'freelist_count'));
  return usedPages * Number(await pragma(read, 'page_size'));
}

/**
 * Folds the write-ahead log into the file and leaves WAL mode. SQLite does that only for the last connection
 * (sqlite.org/wal.html, section 3.3), so it also shows whether another process has the database open.
 * @returns false when another process has it open
 */
export async function createSingleFile(database: Database): Promise<boolean> {
  await database.read.raw('PRAGMA busy_timeout=500');
  try {
    return (await pragma(database.read, 'journal_mode=DELETE')) === 'delete';
  } catch (error) {
    if (/^SQLITE_(BUSY|LOCKED)/.test(errorCode(driverError(error)))) return false;
    throw error;
  }
}

/** This many free pages stay for new rows. */
const MIN_FREE_PAGES = 4096;
const MAX_FREE_PART = 0.1;
const STEP_PAGES = 64;
const MAX_STEPS = 1000;

/** Returns free pages to the disk in short transactions. */
export async function releaseFreePages(database: Database): Promise<void> {
  if (database.file === null) return;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const free = Number(await pragma(database.read, 'freelist_count'));
    if (free < Math.max(MIN_FREE_PAGES, MAX_FREE_PART * Number(await pragma(database.read, 'page_count'))))
      return;
    await database.transaction((tx) => tx.raw(`PRAGMA incremental_vacuum(${STEP_PAGES})`));
  }
}

/** Several processes write one file of the data directory: one at a time, behind the lock of `PATH.lock`. */

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
 * Gives the file to the owner of its directory: root at the command line must not take it from the server. It
 * uses the descriptor, because the directory's owner could make a name point at another file.
 */
export function ownAsDirectory(descriptor: number, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  fchownSync(descriptor, uid, gid);
}

/** A link counts, wherever it leads. */
export const pathExists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Creates an empty file; an existing one is left unchanged. @throws {LinkFound} */
export function createEmptyFile(path: string): void {
  refuseLink(path);
  if (pathExists(path)) return;
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

/**
 * A kernel lock on an empty file, released when its process ends. Node has no API for it, so SQLite takes it:
 * a read transaction shares the file, an exclusive one excludes everyone (sqlite.org/lockingv3.html). The
 * lock is lost if its process opens and closes the file itself.
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
