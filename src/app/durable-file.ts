import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

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

/** Puts a file of mode 0600 in place of an older one. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const handle = openSync(temporary, 'w', 0o600);
  try {
    writeFileSync(handle, content);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, path);
  syncPath(dirname(path));
}

const STAGING = /^staging-(\d+)-.*$/;

/** A file of the data directory that only lives as long as this process works on it. */
export function stagingFile(dataDir: string, name: string): string {
  return join(dataDir, `staging-${process.pid}-${name}`);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** What a killed backup or restore left is a copy of the database in the clear: it goes. */
export function removeLeftStaging(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  for (const name of readdirSync(dataDir)) {
    const pid = Number(STAGING.exec(name)?.[1] ?? 0);
    if (pid > 0 && !isAlive(pid)) rmSync(join(dataDir, name), { force: true });
  }
}
