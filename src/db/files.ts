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
import { Unavailable } from '../lib/errors.ts';
import { driverError, errorCode } from './availability.ts';
import type { Database } from './db.ts';
import { rowsOf } from './sql.ts';
import { execute, requireSqlite, SqliteUnloadable, told } from './sqlite-client.ts';

/** Files that are there whole or not at all, whatever happens in between. */

/**
 * A directory of its owner's own, with its parents. One by one: Node's recursive mkdir never ends where a file system says
 * of a parent that is there that it is not (procfs).
 */
export function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process was first.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

class LinkFound extends Error {
  override readonly name = 'LinkFound';

  constructor(path: string) {
    super(`${path} is a symbolic link: gpd follows none in its data directory; put the file itself there`);
  }
}

/**
 * The data directory belongs to the server's user, and commands may run as root: a link that this user lays must not lead root to
 * another file. @throws {LinkFound}
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

/** Gives a finished temporary file its name. @throws EEXIST rather than overwrite */
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
    const made = fstatSync(handle);
    if (made.uid !== (process.geteuid?.() ?? made.uid))
      throw new Error(`${path} would belong to user ${made.uid}: choose another directory`);
    writeFileSync(handle, content);
    fsyncSync(handle);
    place(temporary);
    const placed = lstatSync(path);
    if (placed.ino !== made.ino || placed.dev !== made.dev)
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

/** What this process has to remove when it ends in the middle of its work. */
const temporary = new Set<string>();

export function temporaryFile(path: string): string {
  temporary.add(path);
  return path;
}

/**
 * A file of the data directory that only lives as long as this process works on it. In a separate directory: without
 * that SQLite, which opens a file late and in a thread, cannot make it again. Its end is {@link removeStaging}.
 */
export function stagingFile(dataDir: string, name: string): string {
  return join(temporaryFile(mkdtempSync(join(dataDir, `staging-${process.pid}-`))), name);
}

const remove = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 3 });

export function removeStaging(file: string): void {
  remove(dirname(file));
  temporary.delete(dirname(file));
}

export function removeTemporaryFiles(): void {
  for (const path of temporary) remove(path);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Process numbers come again: in a container every backup and restore may have the same one. */
function isLeft(path: string, name: string): boolean {
  const pid = Number(STAGING.exec(name)?.[1] ?? 0);
  if (pid === 0 || temporary.has(path)) return false;
  if (pid === process.pid || !isAlive(pid)) return true;
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && Date.now() - stat.mtimeMs > ABANDONED_MS;
}

/** What a killed backup or restore left is an unencrypted copy of the database: deletes it. */
export function removeLeftStaging(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  for (const name of readdirSync(dataDir)) {
    const path = join(dataDir, name);
    if (isLeft(path, name)) remove(path);
  }
}

/** Whole SQLite files: a copy taken while others write, its check, and a file taken for oneself. */

/** The database as of one moment, in a new file without free pages. Writers go on meanwhile. */
export async function copyInto(database: Database, file: string): Promise<void> {
  await database.read.raw('VACUUM INTO ?', [file]);
}

/** What SQLite finds wrong with the file, in its own words; at most ten. */
export async function quickCheck(database: Database): Promise<readonly string[]> {
  const rows = rowsOf<{ quick_check: string }>(await database.read.raw('PRAGMA quick_check(10)'));
  return rows.map((row) => row.quick_check).filter((text) => text !== 'ok');
}

export async function pragma(read: Knex, text: string): Promise<unknown> {
  const [row] = rowsOf<Record<string, unknown>>(await read.raw(`PRAGMA ${text}`));
  return row && Object.values(row)[0];
}

/** Of a PostgreSQL. */
export async function databaseSize({ read }: Database): Promise<number> {
  const sql = 'SELECT pg_database_size(current_database()) AS bytes';
  return Number(rowsOf<{ bytes: number }>(await read.raw(sql))[0]?.bytes);
}

/** Bytes of the pages in use: what a copy takes. */
export async function usedBytes(database: Database): Promise<number> {
  const { kind, read } = database;
  if (kind === 'postgres') return databaseSize(database);
  const used = Number(await pragma(read, 'page_count')) - Number(await pragma(read, 'freelist_count'));
  return used * Number(await pragma(read, 'page_size'));
}

/**
 * Folds the write-ahead log into the file and leaves WAL mode, which SQLite does only for the last connection
 * (sqlite.org/wal.html, section 3.3): so it also tells whether another process has the database open.
 * @returns false when one has
 */
export async function makeSingleFile(database: Database): Promise<boolean> {
  await database.read.raw('PRAGMA busy_timeout=500');
  try {
    return (await pragma(database.read, 'journal_mode=DELETE')) === 'delete';
  } catch (error) {
    if (/^SQLITE_(BUSY|LOCKED)/.test(errorCode(driverError(error)))) return false;
    throw error;
  }
}

/** Less is left for the rows to come. */
const MIN_FREE_PAGES = 4096;
const MAX_FREE_PART = 0.1;
const STEP_PAGES = 64;
const MAX_STEPS = 1000;

/** Pages that rows left free go back to the disk in short transactions. */
export async function releaseFreePages(database: Database): Promise<void> {
  if (database.file === null) return;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const free = Number(await pragma(database.read, 'freelist_count'));
    if (free < Math.max(MIN_FREE_PAGES, MAX_FREE_PART * Number(await pragma(database.read, 'page_count'))))
      return;
    await database.transaction((tx) => tx.raw(`PRAGMA incremental_vacuum(${STEP_PAGES})`));
  }
}

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
 * one must not open and close the file itself: that drops the lock.
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
