import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { HOUR } from '../lib/clock.ts';

/** Files that live only while one process works on them; what a killed process left is removed. */

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
