import { randomBytes } from 'node:crypto';
import { createWriteStream, existsSync, rmSync, statfsSync, statSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { writeActForAll } from '../audit/store.ts';
import type { Config } from '../config.ts';
import { driverError, errorCode } from '../db/availability.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import {
  copyInto,
  createSingleFile,
  publishFile,
  quickCheck,
  removeAbandonedStaging,
  removeStaging,
  stagingFile,
  temporaryFile,
  usedBytes,
} from '../db/files.ts';
import { LAST_BACKUP, readMeta, writeMeta } from '../db/meta-store.ts';
import { lastMigration, migrate } from '../db/migrate.ts';
import { beginBackup, openBackup } from '../keys/backup-format.ts';
import { type MasterKey, SERVER_SECRET } from '../keys/master-key.ts';
import type { InstallationAct } from '../lib/act.ts';
import { isoTime } from '../lib/clock.ts';
import { withClosing } from '../lib/collections.ts';
import { meter } from '../lib/pass-bytes.ts';
import { countLines, readErasureFile } from '../rights/erase/erasure-log.ts';
import type { Store } from '../tenants/installation-files.ts';
import { BackupFailed, DamagedBackup, decryptBytes, encryptBytes, readHead } from './backup-stream.ts';
import { copyMeta, copyRows, emptyAll } from './copy-store.ts';
import { opens } from './escrow.ts';

export const DATABASE_PART = 'gpd.db';
export const ERASURES_PART = 'erasures.log';

export type Stage = 'copying' | 'writing' | 'reading back' | 'checking';
/** `done` of `total` bytes of a stage. */
export type OnProgress = (stage: Stage, done: number, total: number) => void;

const COPY_LOOK_MS = 250;

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

/** `keys rewrap` came in between: the file would open with the old master key, and what is in it with the new one. */
async function requireOurKey(copied: Database, masterKey: MasterKey): Promise<void> {
  if (!opens(masterKey, (await readMeta(copied, SERVER_SECRET)) ?? ''))
    throw new BackupFailed('the master key changed during the backup: run it again');
}

/** The rows of PostgreSQL as of one moment in an SQLite file, so that every backup restores into either. */
async function copyPostgres(database: Database, copy: string): Promise<void> {
  await withClosing(openDatabase({ location: copy, create: true }), async (made) => {
    await migrate(made);
    await made.transaction(emptyAll);
    await database.snapshot(async (from) => {
      await copyRows(from, (work) => made.transaction(work));
      await made.transaction((tx) => copyMeta(from, tx));
    });
    await createSingleFile(made);
  });
}

/** A copy of the whole database as of one moment, in the clear, checked. The caller removes it. */
async function copyDatabase(store: Store, copy: string, onProgress: OnProgress): Promise<void> {
  const total = await usedBytes(store.database);
  const timer = setInterval(() => {
    stat(copy).then(
      ({ size }) => onProgress('copying', Math.min(size, total), total),
      () => {},
    );
  }, COPY_LOOK_MS);
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
    const [wrong] = await quickCheck(copied);
    if (wrong !== undefined)
      throw new BackupFailed(`the database is damaged (${wrong}): restore the last good backup`);
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

/** Opens the written file again, as a restore would, and returns the hash of its content. */
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

function requirePlace(config: Config, file: string, used: number): void {
  const folder = dirname(file);
  const same = statSync(folder).dev === statSync(config.data_dir).dev;
  requireRoom(config.data_dir, same ? 2 * used : used);
  if (!same) requireRoom(folder, used);
}

/** Copies, encrypts, reads back and compares. */
async function fillPartial(store: Store, config: Config, partial: string, options: BackupOptions) {
  const copy = stagingFile(config.data_dir, DATABASE_PART);
  try {
    // Read before the copy begins: what is in these lines is done in the copy, what comes later is done again.
    const log = readErasureFile(config);
    await copyDatabase(store, copy, options.onProgress);
    const handle = await open(copy, 'r');
    // From here on no name leads to the copy in the clear.
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
    const written = await writeDraft(draft, parts(), partial, onBytes);
    if ((await readBack(store, partial, bytes, options.onProgress)) !== written) {
      throw new BackupFailed(`reading back from ${dirname(partial)} gave different bytes: check the disk`);
    }
    const { parts: _, ...said } = facts;
    return { ...said, databaseBytes: size, erasures: countLines(log), verified: true };
  } finally {
    removeStaging(copy);
  }
}

/**
 * One encrypted file of everything but the master key, while servers run; read back and compared before it gets its name.
 * @throws {BackupFailed}
 */
export async function createBackup(store: Store, config: Config, file: string, options: BackupOptions) {
  const folder = dirname(file);
  if (existsSync(file)) throw new BackupFailed(`${file} already exists; nothing was changed`, true);
  if (!existsSync(folder)) throw new BackupFailed(`no such directory: ${folder}; create it first`);
  removeAbandonedStaging(config.data_dir);
  requirePlace(config, file, await usedBytes(store.database));
  const mark = randomBytes(6).toString('hex');
  const partial = temporaryFile(join(folder, `.${basename(file)}.${mark}.partial`));
  try {
    const made = await fillPartial(store, config, partial, options);
    publishFile(partial, file);
    const bytes = statSync(file).size;
    const last = JSON.stringify({ at: options.by.at, bytes });
    await store.database.transaction(async (tx) => {
      await writeMeta(tx, LAST_BACKUP, last);
      await writeActForAll(tx, options.by, 'backup.made', { bytes });
    });
    return { file, bytes, ...made };
  } catch (error) {
    throw plainly(error, folder);
  } finally {
    rmSync(partial, { force: true });
  }
}

/** The disk's own refusals, as a sentence. */
function plainly(error: unknown, folder: string): unknown {
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
