import { chownSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Unavailable } from '../lib/errors.ts';
import { syncPath } from './durable-files.ts';
import { lockFile, type Release } from './file-lock.ts';
import { SqliteUnloadable } from './sqlite-client.ts';

/** A file of the data directory that several processes write: one at a time, behind the lock of `PATH.lock`. */

const LOCK_TRIES = 20;
const LOCK_WAIT_MS = 25;

/** Within a process: the kernel's lock is between processes. */
const turns = new Map<string, Promise<unknown>>();

export function inTurn<T>(path: string, work: () => Promise<T>): Promise<T> {
  const turn = (turns.get(path) ?? Promise.resolve()).then(work, work);
  turns.set(
    path,
    turn.catch(() => {}),
  );
  return turn;
}

/** Owned as its directory is: root at the command line must not take a file from the server. */
export function ownAsDirectory(path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  chownSync(path, uid, gid);
}

export async function makeEmpty(path: string): Promise<void> {
  await (await open(path, 'a', 0o600)).close();
  ownAsDirectory(path);
  syncPath(dirname(path));
}

export const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

/** On PostgreSQL without SQLite's module nobody holds it: two processes at one moment would break the chain, and be told. */
async function lockOf(path: string): Promise<Release> {
  const lock = `${path}.lock`;
  if (!isThere(lock)) await makeEmpty(lock);
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
  inTurn(path, async () => {
    const release = await lockOf(path);
    try {
      return await work();
    } finally {
      await release();
    }
  });
