import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, lstatSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Config, ConfigError, sqliteFile } from '../config.ts';
import { locationName } from '../db/availability.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import { createSingleFile, removeAbandonedStaging, replaceFile, syncPath } from '../db/files.ts';
import { BrokenLog } from '../db/line-log.ts';
import { readMeta } from '../db/meta-store.ts';
import { migrate } from '../db/migrate.ts';
import { createMasterKey, SERVER_SECRET, serverSecretContext } from '../keys/master-key.ts';
import { withClosing } from '../lib/collections.ts';
import { type CheckpointBook, checkpointFile, createCheckpointBook } from '../log/checkpoint-files.ts';
import { erasuresFile } from '../rights/erase/erasure-log.ts';
import { migrateData } from '../tenants/installation-files.ts';
import { readMasterKey } from '../tenants/master-key-files.ts';
import { BackupFailed, inUse } from './backup-stream.ts';
import { analyze, compareRows, copyMeta, copyRows, emptyAll, othersConnected } from './copy-store.ts';

/** The last step of a restore: one database takes the other's place. */

/** @throws {BackupFailed} when somebody else has it open */
export async function foldOrThrow(path: string): Promise<void> {
  if (!(await withClosing(openDatabase({ location: path }), createSingleFile))) throw inUse(path);
}

const DAMAGED = /^SQLITE_(CORRUPT|NOTADB)/;

/**
 * No other program uses the old database, and its log is folded in. What is too damaged for that is set aside as it is: the
 * lock of the data directory (tenants/installation-files.ts) says that no gpd has it open.
 */
export async function claimOld(old: string): Promise<void> {
  if (!existsSync(old)) return;
  if (lstatSync(old).isSymbolicLink()) {
    throw new BackupFailed(
      `${old} is a symbolic link, and its target would remain after the restore: put the file itself there first`,
    );
  }
  try {
    await foldOrThrow(old);
  } catch (error) {
    if (!DAMAGED.test(String((error as { code?: unknown }).code))) throw error;
  }
}

const SUFFIXES = ['', '-wal', '-shm'] as const;

const asideOf = (target: string): string => `${target}.before-restore`;

/** Erasures to come would not find the old database: it does not stay once the new one has opened. */
function removeAside(config: Config): void {
  const aside = asideOf(sqliteFile(config));
  for (const suffix of SUFFIXES) rmSync(`${aside}${suffix}`, { force: true });
}

/** What a killed backup or restore left, for a process that has the database open. */
export function removeLeftovers(config: Config): void {
  removeAbandonedStaging(config.data_dir);
  if (config.database_url === null) removeAside(config);
}

/** A stale log next to another database would be read into it: it is deleted first. The database itself changes in one rename. */
function swapIn(config: Config, staged: string): void {
  const target = sqliteFile(config);
  const aside = asideOf(target);
  removeAside(config);
  if (existsSync(target)) linkSync(target, aside);
  for (const suffix of ['-wal', '-shm']) {
    if (existsSync(`${target}${suffix}`)) renameSync(`${target}${suffix}`, `${aside}${suffix}`);
  }
  renameSync(staged, target);
  syncPath(dirname(target));
}

/** Whole before the database that has to repeat them is there. */
function putErasures({ data_dir }: Config, lines: readonly string[]): void {
  if (lines.length > 0) replaceFile(erasuresFile(data_dir), lines.map((line) => `${line}\n`).join(''));
}

export async function putInPlace(config: Config, staged: string, erasures: readonly string[]): Promise<void> {
  const target = sqliteFile(config);
  await claimOld(target);
  putErasures(config, erasures);
  swapIn(config, staged);
  const masterKey = createMasterKey(readMasterKey(config), randomBytes);
  const wrapped = await withClosing(openDatabase({ location: target }), (made) =>
    readMeta(made, SERVER_SECRET),
  );
  masterKey.unwrap(wrapped ?? '', serverSecretContext);
  removeAside(config);
  syncPath(config.data_dir);
}

/** @param name without the user and the password. @throws {BackupFailed} when servers or commands are connected */
export async function requireAlone(database: Database, name: string): Promise<void> {
  const others = await othersConnected(database);
  if (others > 0)
    throw new BackupFailed(
      `gpd has ${others} other connections to ${name}: stop the servers and other commands first`,
      true,
    );
}

/** @throws {BackupFailed} when servers use it */
export async function claimPostgres(url: string): Promise<void> {
  await withClosing(openDatabase({ location: url }), (database) => requireAlone(database, locationName(url)));
}

/** All rows of a checked file replace those in PostgreSQL, in one transaction. */
export async function putInPostgres(
  config: Config,
  url: string,
  staged: string,
  erasures: readonly string[],
) {
  putErasures(config, erasures);
  await withClosing(openDatabase({ location: staged }), async (source) => {
    await migrate(source);
    await withClosing(openDatabase({ location: url }), async (target) => {
      await migrateData(config, target);
      await target.longTransaction(async (tx) => {
        await emptyAll(tx);
        await copyRows(source.read, (work) => work(tx));
        const { differs } = await compareRows(source.read, tx);
        if (differs !== null) throw new BackupFailed(`${differs} differs in the target: nothing was changed`);
        await copyMeta(source.read, tx);
      });
      await analyze(target);
    });
  });
}

/** @throws {ConfigError} of another installation, or damaged: it may be evidence, and is not written over */
export async function openBook(dataDir: string, secret: Buffer): Promise<CheckpointBook> {
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
