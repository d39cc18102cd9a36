import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
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
import { dirname, join } from 'node:path';
import { HOUR } from '../lib/clock.ts';

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
