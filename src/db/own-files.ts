import { randomBytes } from 'node:crypto';
import {
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
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from '../lib/errors.ts';

/**
 * Files of the data directory, which no link leads elsewhere and which are written whole or not at all; and
 * files that a person names.
 */

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
 * Writes a file of mode 0600, whole or not at all. Its directory may be one that others write to: the file is
 * new, of this user, and `path` is this very file afterwards.
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

export class NotRegularFile extends Error {
  constructor(path: string) {
    super(`${path}: not a regular file`);
    this.name = 'NotRegularFile';
  }
}

/**
 * Without O_NONBLOCK the open of a FIFO would wait for a writer, and a signal would not end it.
 * @returns a descriptor that the caller closes
 * @throws {NotRegularFile} for a FIFO, a device or a folder, {Error} of node:fs
 */
export function openRegularFile(path: string): number {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw new NotRegularFile(path);
}

/** @throws {NotRegularFile} as `openRegularFile` */
export function readRegularFile(path: string): Buffer {
  const descriptor = openRegularFile(path);
  try {
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
