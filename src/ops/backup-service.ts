import { randomBytes } from 'node:crypto';
import { createWriteStream, existsSync, rmSync, statfsSync, statSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { writeActForAll } from '../audit/audit-store.ts';
import type { Config } from '../config.ts';
import { copyInto, createSingleFile, quickCheck, usedBytes } from '../db/database-file.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import { LAST_BACKUP, readMeta, writeMeta } from '../db/meta-store.ts';
import { lastMigration, migrate } from '../db/migrate.ts';
import { publishFile } from '../db/own-files.ts';
import { removeAbandonedStaging, removeStaging, stagingFile, temporaryFile } from '../db/staging-files.ts';
import { beginBackup, openBackup } from '../keys/backup-format.ts';
import { type MasterKey, SERVER_SECRET } from '../keys/master-key.ts';
import type { InstallationAct } from '../lib/act.ts';
import { isoTime } from '../lib/clock.ts';
import { withClosing } from '../lib/collections.ts';
import { driverError, errorCode } from '../lib/errors.ts';
import { meter } from '../lib/pass-bytes.ts';
import { countLines, readErasureFile } from '../rights/erase/erasure-log-service.ts';
import type { Store } from '../tenants/installation-files.ts';
import { BackupFailed, DamagedBackup, decryptBytes, encryptBytes, readHead } from './backup-stream-files.ts';
import { copyMeta, copyRows, emptyAllTables } from './copy-store.ts';
import { opensSecret } from './escrow-files.ts';

/**
 * `gpd backup`: writes the database and erasures.log to one encrypted file, and reads it back
 * (keys/backup-format).
 */

export const DATABASE_PART = 'gpd.db';
export const ERASURES_PART = 'erasures.log';

export type Stage = 'copying' | 'writing' | 'reading back' | 'checking';
/** `done` of `total` bytes of a stage. */
export type OnProgress = (stage: Stage, done: number, total: number) => void;

const COPY_PROGRESS_MS = 250;

/** @throws {BackupFailed} */
export function requireRoom(directory: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(directory);
  const mega = (n: number): string => `${Math.ceil(n / 1e6).toLocaleString('en')} MB`;
  if (bavail * bsize < bytes) {
    throw new BackupFailed(
      `${directory} has ${mega(bavail * bsize)} free and needs ${mega(bytes)}: make room, or write elsewhere`,
    );
  }
}

/** A `gpd keys rewrap` during the copy would leave a file with an old and content with a new master key. */
async function requireOurKey(copied: Database, masterKey: MasterKey): Promise<void> {
  if (!opensSecret(masterKey, (await readMeta(copied, SERVER_SECRET)) ?? ''))
    throw new BackupFailed('the master key changed during the backup: run it again');
}

/** Copies a snapshot of PostgreSQL into an SQLite file, so that a backup can be restored into either. */
async function copyPostgres(database: Database, copy: string): Promise<void> {
  await withClosing(openDatabase({ location: copy, create: true }), async (copied) => {
    await migrate(copied);
    await copied.transaction(emptyAllTables);
    await database.snapshot(async (from) => {
      await copyRows(from, (work) => copied.transaction(work));
      await copied.transaction((tx) => copyMeta(from, tx));
    });
    await createSingleFile(copied);
  });
}

/** Writes an unencrypted copy of one snapshot of the database and checks it. The caller deletes it. */
async function copyDatabase(store: Store, copy: string, onProgress: OnProgress): Promise<void> {
  const total = await usedBytes(store.database);
  const timer = setInterval(() => {
    stat(copy).then(
      ({ size }) => onProgress('copying', Math.min(size, total), total),
      () => {},
    );
  }, COPY_PROGRESS_MS);
  try {
    if (store.database.kind === 'postgres') await copyPostgres(store.database, copy);
    else {
      await (await open(copy, 'wx', 0o600)).close();
      await copyInto(store.database, copy);
    }
  } finally {
    clearInterval(timer);
  }
  onProgress('checking', 0, total);
  await withClosing(openDatabase({ location: copy }), async (copied) => {
    const [fault] = await quickCheck(copied);
    if (fault !== undefined)
      throw new BackupFailed(`the database is damaged (${fault}): restore the last good backup`);
    await requireOurKey(copied, store.masterKey);
  });
}

async function writeDraft(
  { head, cipher }: ReturnType<typeof beginBackup>,
  parts: AsyncIterable<Uint8Array>,
  file: string,
  onBytes: (done: number) => void,
): Promise<string> {
  const { pass, result } = meter(onBytes);
  async function* content(): AsyncGenerator<Buffer> {
    yield head;
    yield* encryptBytes(pass(parts), cipher);
  }
  await pipeline(content, createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true }));
  return result().sha256;
}

/** Decrypts the written file as a restore would. @returns the hash of its content */
async function readBack(store: Store, file: string, total: number, onProgress: OnProgress): Promise<string> {
  const head = await readHead(file);
  const cipher = openBackup(store.masterKey, head.header, head.bytes);
  if (!cipher) throw new DamagedBackup(file, 'it does not open with the master key that it was made with');
  const { pass, result } = meter((done) => onProgress('reading back', done, total));
  for await (const _ of pass(decryptBytes(file, head, cipher)));
  return result().sha256;
}

interface BackupOptions {
  readonly version: string;
  readonly by: InstallationAct;
  readonly onProgress: OnProgress;
}

function requireDiskSpace(config: Config, file: string, bytes: number): void {
  const folder = dirname(file);
  const isSameDisk = statSync(folder).dev === statSync(config.data_dir).dev;
  requireRoom(config.data_dir, isSameDisk ? 2 * bytes : bytes);
  if (!isSameDisk) requireRoom(folder, bytes);
}

/** Copies, encrypts, reads back and compares. @returns facts about the backup */
async function fillPartial(store: Store, config: Config, partial: string, options: BackupOptions) {
  const copy = stagingFile(config.data_dir, DATABASE_PART);
  try {
    // Read before the copy: the copy has all erasures of these lines, and a restore repeats later ones.
    const log = readErasureFile(config);
    await copyDatabase(store, copy, options.onProgress);
    const handle = await open(copy, 'r');
    // From here on the unencrypted copy has no name: it vanishes with the process.
    rmSync(copy);
    const { size } = await handle.stat();
    const facts = {
      createdAt: isoTime(options.by.at),
      gpd: options.version,
      schema: await lastMigration(store.database),
      parts: [
        { name: DATABASE_PART, bytes: size },
        { name: ERASURES_PART, bytes: log.length },
      ],
    };
    async function* parts(): AsyncGenerator<Uint8Array> {
      yield* handle.createReadStream() as AsyncIterable<Uint8Array>;
      yield log;
    }
    const bytes = size + log.length;
    const draft = beginBackup(store.masterKey, facts, randomBytes);
    const onBytes = (done: number): void => options.onProgress('writing', done, bytes);
    const writtenHash = await writeDraft(draft, parts(), partial, onBytes);
    if ((await readBack(store, partial, bytes, options.onProgress)) !== writtenHash) {
      throw new BackupFailed(`reading back from ${dirname(partial)} gave different bytes: check the disk`);
    }
    const { parts: _, ...reportedFacts } = facts;
    return { ...reportedFacts, databaseBytes: size, erasures: countLines(log), verified: true };
  } finally {
    removeStaging(copy);
  }
}

/**
 * Writes everything but the master key to one encrypted file while servers run. The file gets its name after
 * it was read back.
 * @throws {BackupFailed}
 */
export async function createBackup(store: Store, config: Config, file: string, options: BackupOptions) {
  const folder = dirname(file);
  if (existsSync(file)) throw new BackupFailed(`${file} already exists; nothing was changed`, true);
  if (!existsSync(folder)) throw new BackupFailed(`no such directory: ${folder}; create it first`);
  removeAbandonedStaging(config.data_dir);
  requireDiskSpace(config, file, await usedBytes(store.database));
  const suffix = randomBytes(6).toString('hex');
  const partial = temporaryFile(join(folder, `.${basename(file)}.${suffix}.partial`));
  try {
    const details = await fillPartial(store, config, partial, options);
    publishFile(partial, file);
    const bytes = statSync(file).size;
    const last = JSON.stringify({ at: options.by.at, bytes });
    await store.database.transaction(async (tx) => {
      await writeMeta(tx, LAST_BACKUP, last);
      await writeActForAll(tx, options.by, 'backup.made', { bytes });
    });
    return { file, bytes, ...details };
  } catch (error) {
    throw explainDiskError(error, folder);
  } finally {
    rmSync(partial, { force: true });
  }
}

/** Turns errors of the disk into sentences; others stay as they are. */
function explainDiskError(error: unknown, folder: string): unknown {
  const code = errorCode(driverError(error));
  if (code === 'EEXIST') return new BackupFailed('a backup with that name was made at the same time', true);
  if (code === 'ENOSPC' || code === 'SQLITE_FULL' || code === 'EDQUOT') {
    return new BackupFailed('the disk is full: make room, or write elsewhere');
  }
  if (code === 'EACCES' || code === 'EROFS' || code === 'EPERM') {
    return new BackupFailed(`cannot write to ${folder}: permission denied`);
  }
  return error;
}
