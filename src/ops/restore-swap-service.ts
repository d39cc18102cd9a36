import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, lstatSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Config, ConfigError, sqliteFile } from '../config.ts';
import { locationName } from '../db/availability.ts';
import { createSingleFile } from '../db/database-file.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import { refuseForeignObjects } from '../db/foreign-objects.ts';
import { BrokenLog } from '../db/line-log.ts';
import { readMeta } from '../db/meta-store.ts';
import { migrate } from '../db/migrate.ts';
import { replaceFile, syncPath } from '../db/own-files.ts';
import { removeAbandonedStaging } from '../db/staging-files.ts';
import { createMasterKey, SERVER_SECRET, serverSecretContext } from '../keys/master-key.ts';
import { withClosing } from '../lib/collections.ts';
import { type CheckpointBook, checkpointFile, createCheckpointBook } from '../log/checkpoint-files.ts';
import { erasuresFile } from '../rights/erase/erasure-log-service.ts';
import { TABLES } from '../rights/person-map.ts';
import { migrateData } from '../tenants/installation-files.ts';
import { readMasterKey } from '../tenants/master-key-files.ts';
import { BackupFailed, inUse } from './backup-stream-files.ts';
import {
  analyze,
  compareRows,
  copyMeta,
  copyRows,
  countOtherConnections,
  emptyAllTables,
} from './copy-store.ts';

/** The last step of a restore: the prepared database replaces the current one. */

/** Folds the write-ahead log into the file. @throws {BackupFailed} when another program has it open */
export async function requireSingleFile(path: string): Promise<void> {
  if (!(await withClosing(openDatabase({ location: path }), createSingleFile))) throw inUse(path);
}

const DAMAGED = /^SQLITE_(CORRUPT|NOTADB)/;

/**
 * Ensures that no other program uses the current database. A damaged one passes: the lock of the data
 * directory (tenants/installation-files.ts) proves that no gpd has it open.
 */
export async function claimCurrentFile(path: string): Promise<void> {
  if (!existsSync(path)) return;
  if (lstatSync(path).isSymbolicLink()) {
    throw new BackupFailed(
      `${path} is a symbolic link, and its target would remain after the restore: put the file itself there first`,
    );
  }
  try {
    await requireSingleFile(path);
  } catch (error) {
    if (!DAMAGED.test(String((error as { code?: unknown }).code))) throw error;
  }
}

const SUFFIXES = ['', '-wal', '-shm'] as const;

const asidePath = (target: string): string => `${target}.before-restore`;

/** Deletes the old database after the new one has opened, because later erasures would not reach it. */
function removeAside(config: Config): void {
  const aside = asidePath(sqliteFile(config));
  for (const suffix of SUFFIXES) rmSync(`${aside}${suffix}`, { force: true });
}

/** Deletes the files that a killed backup or restore left. The caller has the database open. */
export function removeLeftovers(config: Config): void {
  removeAbandonedStaging(config.data_dir);
  if (config.database_url === null) removeAside(config);
}

/**
 * Replaces the database in one rename. The old write-ahead log is moved first: SQLite would read it into the
 * new database.
 */
function swapFiles(config: Config, staged: string): void {
  const target = sqliteFile(config);
  const aside = asidePath(target);
  removeAside(config);
  if (existsSync(target)) linkSync(target, aside);
  for (const suffix of ['-wal', '-shm']) {
    if (existsSync(`${target}${suffix}`)) renameSync(`${target}${suffix}`, `${aside}${suffix}`);
  }
  renameSync(staged, target);
  syncPath(dirname(target));
}

/** Called before the database is replaced, which repeats the erasures of these lines. */
function writeErasureLines({ data_dir }: Config, lines: readonly string[]): void {
  if (lines.length > 0) replaceFile(erasuresFile(data_dir), lines.map((line) => `${line}\n`).join(''));
}

export async function replaceSqlite(
  config: Config,
  staged: string,
  erasures: readonly string[],
): Promise<void> {
  const target = sqliteFile(config);
  await claimCurrentFile(target);
  writeErasureLines(config, erasures);
  swapFiles(config, staged);
  const masterKey = createMasterKey(readMasterKey(config), randomBytes);
  const wrapped = await withClosing(openDatabase({ location: target }), (database) =>
    readMeta(database, SERVER_SECRET),
  );
  masterKey.unwrap(wrapped ?? '', serverSecretContext);
  removeAside(config);
  syncPath(config.data_dir);
}

/**
 * @param name location without user and password @throws {BackupFailed} when servers or commands are
 * connected
 */
export async function requireAlone(database: Database, name: string): Promise<void> {
  const count = await countOtherConnections(database);
  if (count > 0)
    throw new BackupFailed(
      `gpd has ${count} other connections to ${name}: stop the servers and other commands first`,
      true,
    );
}

/** @throws {BackupFailed} when servers or commands are connected */
export async function claimPostgres(url: string): Promise<void> {
  await withClosing(openDatabase({ location: url }), (database) => requireAlone(database, locationName(url)));
}

/** Replaces all rows in PostgreSQL by those of a checked SQLite file, in one transaction. */
export async function replacePostgres(
  config: Config,
  url: string,
  staged: string,
  erasures: readonly string[],
) {
  writeErasureLines(config, erasures);
  await withClosing(openDatabase({ location: staged }), async (source) => {
    await migrate(source);
    await withClosing(openDatabase({ location: url }), async (target) => {
      await migrateData(config, target);
      await refuseForeignObjects(target, TABLES);
      await target.longTransaction(async (tx) => {
        await emptyAllTables(tx);
        await copyRows(source.read, (work) => work(tx));
        const { differs } = await compareRows(source.read, tx);
        if (differs !== null) throw new BackupFailed(`${differs} differs in the target: nothing was changed`);
        await copyMeta(source.read, tx);
      });
      await analyze(target);
    });
  });
}

/**
 * @throws {ConfigError} when checkpoints.log is damaged or of another installation: it may be evidence, so it
 * is not overwritten
 */
export async function openCheckpointBook(dataDir: string, secret: Buffer): Promise<CheckpointBook> {
  const book = createCheckpointBook(dataDir, secret);
  try {
    await book.last('');
  } catch (error) {
    if (!(error instanceof BrokenLog)) throw error;
    if (existsSync(checkpointFile(dataDir)) && statSync(checkpointFile(dataDir)).size > 0)
      throw new ConfigError(`${error.message}: keep that file elsewhere, delete it here, and restore again`);
  }
  return book;
}
