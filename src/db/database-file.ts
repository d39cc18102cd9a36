import type { Knex } from 'knex';
import { driverError, errorCode } from '../lib/errors.ts';
import type { Database } from './engine.ts';
import { rowsOf } from './sql.ts';

/** The database's own file: its copy, its check, its size, its free pages. */

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
