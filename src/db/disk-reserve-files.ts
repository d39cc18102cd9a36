import { randomBytes } from 'node:crypto';
import { constants, rmSync, statfsSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { closing } from '../lib/closing.ts';
import { Unavailable } from '../lib/errors.ts';
import { driverError, errorCode, isIoError } from './availability.ts';
import type { Database } from './db.ts';
import { NO_LINK } from './durable-files.ts';

/**
 * DATA_DIR/reserve takes up room on the disk that nobody else may have, and gives it to an erasure when there is no
 * other left: deleting needs room in the write-ahead log, and the law does not wait for a larger disk (ADR 0013).
 */
export type DiskReserve = ReturnType<typeof makeDiskReserve>;

const MEGA = 1024 * 1024;
/** SQLite's shared memory and the first pages of a log. */
const TO_OPEN = MEGA;
/** Left to others when the reserve is made. */
const BESIDE = 16 * MEGA;

function reserveFile(dataDir: string): string {
  return join(dataDir, 'reserve');
}

/** Bytes that it holds; 0: no reserve. */
export function reserveSize(dataDir: string): number {
  return statSync(reserveFile(dataDir), { throwIfNoEntry: false })?.size ?? 0;
}

function freeBytes(dataDir: string): number {
  const { bavail, bsize } = statfsSync(dataDir);
  return bavail * bsize;
}

const isFull = (error: unknown): boolean =>
  ['ENOSPC', 'EDQUOT', 'SQLITE_FULL'].includes(errorCode(error as Error));

async function grow(file: FileHandle, missing: number): Promise<void> {
  // No zeros: a file system that compresses would keep none of them.
  const chunk = randomBytes(Math.min(MEGA, missing));
  for (let left = missing; left > 0; left -= chunk.length) {
    await file.appendFile(left < chunk.length ? chunk.subarray(0, left) : chunk);
  }
}

/** The error of a full disk, which SQLite's shared memory reports as an I/O error. */
function meansFull(dataDir: string, thrown: unknown): boolean {
  const error = driverError(thrown);
  return isFull(error) || (isIoError(error) && freeBytes(dataDir) < TO_OPEN);
}

function giveUp(dataDir: string): boolean {
  if (reserveSize(dataDir) === 0) return false;
  rmSync(reserveFile(dataDir), { force: true });
  return true;
}

/** As much as there is room for: what it had before comes back to it, and to nobody else. */
async function fill(dataDir: string, size: number): Promise<void> {
  const missing = size - reserveSize(dataDir);
  if (missing <= 0) return;
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | NO_LINK;
  await closing(open(reserveFile(dataDir), flags, 0o600), async (file) => {
    const grown = grow(file, missing).then(() => file.sync());
    await grown.catch((error: unknown) => {
      if (!isFull(error)) throw error;
    });
  });
}

function guardUnless(isSpent: () => boolean, database: Database): Database {
  const unlessSpent = <T>(write: () => Promise<T>): Promise<T> =>
    isSpent()
      ? Promise.reject(new Unavailable('the disk is full; the rest is reserved for erasures', 2))
      : write();
  return {
    ...database,
    transaction: (work, how) => unlessSpent(() => database.transaction(work, how)),
    hotTransaction: (work) => unlessSpent(() => database.hotTransaction(work)),
  };
}

/** @param megabytes 0: no reserve is kept, and one that is there is left alone */
export function makeDiskReserve(dataDir: string, megabytes: number) {
  const size = megabytes * MEGA;
  let erasing = 0;
  let spent = false;
  /** Given up before there was an erasure: what is left of the room comes back. */
  let owed = false;

  async function attempt<S>(step: () => Promise<S>): Promise<S> {
    try {
      return await step();
    } catch (error) {
      if (!meansFull(dataDir, error) || !(giveUp(dataDir) || spent)) throw error;
      spent = true;
      return step();
    }
  }

  return {
    /** The database for everything that may wait: refused while an erasure spends what was reserved for it. */
    guard: (database: Database) => guardUnless(() => spent, database),

    /** Steps of one erasure; a step that finds the disk full is done again with the reserve given up. */
    async during<T>(work: (attempt: <S>(step: () => Promise<S>) => Promise<S>) => Promise<T>) {
      erasing += 1;
      try {
        return await work(attempt);
      } finally {
        erasing -= 1;
        if ((spent || owed) && erasing === 0) {
          // An erasure that is done says so, whether the reserve came back or not: the next sweep looks again.
          await fill(dataDir, size).catch(() => {});
          spent = false;
          owed = false;
        }
      }
    },

    /** Gives it up where the disk is so full that not even the database would open. */
    openUp() {
      if (freeBytes(dataDir) < TO_OPEN) owed = giveUp(dataDir);
    },

    /** Fills it up where there is room for others as well. */
    async refill() {
      const missing = size - reserveSize(dataDir);
      if (missing <= 0 || !(owed || freeBytes(dataDir) >= missing + BESIDE)) return;
      owed = false;
      await fill(dataDir, size);
    },
  };
}
