import { randomBytes } from 'node:crypto';
import { createWriteStream, existsSync, readdirSync, rmdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { writeActForAll } from '../audit/store.ts';
import { type Config, ConfigError, sqliteFile } from '../config.ts';
import { type Database, openDatabase } from '../db/db.ts';
import { removeLeftStaging, removeStaging, stagingFile, syncPath } from '../db/durable-files.ts';
import { quickCheck } from '../db/file-copy.ts';
import { LAST_BACKUP, readMeta, writeMeta } from '../db/meta-store.ts';
import { refusalOf, schemaState } from '../db/migrate.ts';
import { openBackup } from '../keys/backup-format.ts';
import { SERVER_SECRET, serverSecretContext } from '../keys/contexts.ts';
import { type MasterKey, makeMasterKey } from '../keys/master-key.ts';
import { equalBytes } from '../lib/hash.ts';
import {
  completeLines,
  countUndone,
  mergeErasures,
  parseErasures,
  readErasureLines,
} from '../rights/erase/erasure-log-files.ts';
import { readableTombstones, type Tombstone, tombstoneFile } from '../rights/erase/tombstone-files.ts';
import { withDataAlone } from '../tenants/data-lock-files.ts';
import { makeDataDirectory } from '../tenants/installation-files.ts';
import {
  masterKeyPath,
  readMasterKey,
  readMasterKeyFile,
  writeMasterKeyFile,
} from '../tenants/master-key-files.ts';
import { operatorsOf } from '../tenants/operators-service.ts';
import { DATABASE_PART, ERASURES_PART, type OnProgress, requireRoom } from './backup.ts';
import { BackupFailed, inUse } from './backup-failed.ts';
import { type BackupHead, DamagedBackup, openBytes, readHead } from './backup-stream.ts';
import { type Going, type LostEntries, planGoingOn } from './restore-checkpoints-service.ts';
import { claimOld, foldOrThrow, openBook, putInPlace } from './restore-swap.ts';
import { rewrapAll } from './rewrap-store.ts';

export interface RestoreOptions {
  /** The backup's master key, where the data directory has none or another one. */
  readonly keyFile?: string;
  /** Verifies and changes nothing. */
  readonly dryRun: boolean;
  readonly onProgress: OnProgress;
  /** Account at the command line, and the time. */
  readonly by: { readonly account: string; readonly at: number };
}

export interface Restored {
  readonly file: string;
  readonly dataDir: string;
  readonly createdAt: string;
  readonly gpd: string;
  /** Logs of which a checkpoint over more entries was signed: whoever kept it can prove that they are missing. */
  readonly lostEntries: readonly LostEntries[];
  /** Erasures that came after the backup: `gpd serve` repeats them before it listens. */
  readonly erasuresToRepeat: number;
  /** The data were wrapped with the master key of the data directory instead of the backup's. */
  readonly rewrapped: boolean;
  readonly dryRun: boolean;
}

interface Keys {
  readonly backup: Buffer;
  /** Null: there is none yet, and the backup's is put in its place. */
  readonly current: Buffer | null;
}

function readKeys(config: Config, keyFile: string | undefined): Keys {
  const path = masterKeyPath(config);
  const current = existsSync(path) || keyFile === undefined ? readMasterKey(config) : null;
  if (keyFile === undefined) return { backup: readMasterKey(config), current };
  if (current === null && dirname(path) !== config.data_dir) readMasterKeyFile(path);
  return { backup: readMasterKeyFile(keyFile), current };
}

/** Cuts the stream in two: what is not of the first part is put into `rest`. */
async function* firstPart(
  source: AsyncIterable<Buffer>,
  size: number,
  rest: Uint8Array[],
  onProgress: OnProgress,
): AsyncGenerator<Uint8Array> {
  let done = 0;
  for await (const bytes of source) {
    const left = Math.max(0, size - done);
    done += bytes.length;
    onProgress('writing', Math.min(done, size), size);
    if (left > 0) yield bytes.subarray(0, left);
    if (bytes.length > left) rest.push(bytes.subarray(left));
  }
}

/** Writes the database to a file in the clear, and answers the lines of the erasure log that came with it. */
async function unpack(
  file: string,
  head: BackupHead,
  masterKey: MasterKey,
  staged: string,
  onProgress: OnProgress,
): Promise<readonly string[]> {
  const cipher = openBackup(masterKey, head.header, head.bytes);
  if (!cipher) {
    throw new ConfigError(
      `${file} was made under another master key: name the file of that key with --key-file`,
    );
  }
  const [database, log] = head.header.parts;
  if (database?.name !== DATABASE_PART || log?.name !== ERASURES_PART || head.header.parts.length !== 2) {
    throw new DamagedBackup(
      file,
      'it holds other parts than this gpd knows: restore it with the gpd that made it',
    );
  }
  const rest: Uint8Array[] = [];
  const content = firstPart(openBytes(file, head, cipher), database.bytes, rest, onProgress);
  await pipeline(
    Readable.from(content),
    createWriteStream(staged, { flags: 'wx', mode: 0o600, flush: true }),
  );
  const lines = Buffer.concat(rest);
  if (statSync(staged).size !== database.bytes || lines.length !== log.bytes) {
    throw new DamagedBackup(file, 'it is not complete; use another backup');
  }
  return completeLines(lines.toString());
}

async function checkStaged(file: string, database: Database, masterKey: MasterKey): Promise<Buffer> {
  const wrong = await quickCheck(database);
  if (wrong.length > 0)
    throw new DamagedBackup(file, `its database is damaged (${wrong[0]}); use another backup`);
  const { unknown } = await schemaState(database);
  if (unknown.length > 0) {
    throw new BackupFailed(`${file} ${refusalOf(unknown)}`);
  }
  const wrapped = await readMeta(database, SERVER_SECRET);
  if (wrapped === null) throw new DamagedBackup(file, 'its database was never initialised');
  return masterKey.unwrap(wrapped, serverSecretContext);
}

interface StagedNeeds {
  readonly tombstones: readonly Tombstone[];
  readonly dataDir: string;
  readonly by: RestoreOptions['by'];
}

/** Opens the copy under its own key, and wraps it with the directory's where that is another. */
async function prepareStaged(
  file: string,
  head: BackupHead,
  staged: string,
  keys: Keys,
  { tombstones, dataDir, by }: StagedNeeds,
): Promise<{ readonly rewrapped: boolean; readonly undone: number; readonly going: Going }> {
  const database = await openDatabase({ location: staged });
  try {
    const masterKey = makeMasterKey(keys.backup, randomBytes);
    const secret = await checkStaged(file, database, masterKey);
    const book = await openBook(dataDir, secret);
    const { lines, lost } = await planGoingOn({ database, masterKey, book, now: by.at });
    const other = keys.current !== null && !equalBytes(keys.current, keys.backup) ? keys.current : null;
    // The backup that a database came from is its last one: it was noted after the copy was taken.
    const last = JSON.stringify({ at: Date.parse(head.header.createdAt), bytes: statSync(file).size });
    const act = { actorOf: await operatorsOf({ database, masterKey }, by.account), at: by.at };
    await database.transaction(async (tx) => {
      await writeMeta(tx, LAST_BACKUP, last);
      const { createdAt, gpd } = head.header;
      await writeActForAll(tx, act, 'restore.done', { backup: createdAt, gpd });
    });
    if (other) await rewrapAll(database, masterKey, makeMasterKey(other, randomBytes), secret, act);
    const going = { lost, write: () => book.keepAfterLoss(lines) };
    return { rewrapped: other !== null, undone: await countUndone(database, tombstones), going };
  } finally {
    await database.close();
  }
}

interface Source {
  readonly file: string;
  readonly head: BackupHead;
  readonly keys: Keys;
}

async function restoreFrom(
  { file, head, keys }: Source,
  config: Config,
  options: RestoreOptions,
): Promise<Restored> {
  if (!options.dryRun) await claimOld(sqliteFile(config));
  const staged = stagingFile(config.data_dir, 'restore.db');
  try {
    requireRoom(config.data_dir, head.header.parts[0]?.bytes ?? 0);
    const carried = await unpack(
      file,
      head,
      makeMasterKey(keys.backup, randomBytes),
      staged,
      options.onProgress,
    );
    options.onProgress('checking', 0, 0);
    const ours = readErasureLines(config);
    parseErasures(ours, tombstoneFile(config.data_dir));
    // A damaged line that the backup carries is done in its own database; it stays for who restores an older one.
    const lines = mergeErasures(ours, carried);
    const tombstones = readableTombstones(lines);
    const needs = { tombstones, dataDir: config.data_dir, by: options.by };
    const { rewrapped, undone, going } = await prepareStaged(file, head, staged, keys, needs);
    await foldOrThrow(staged);
    syncPath(staged);
    const { createdAt, gpd } = head.header;
    const said = { file, dataDir: config.data_dir, createdAt, gpd, rewrapped, dryRun: options.dryRun };
    if (!options.dryRun) {
      if (keys.current === null) writeMasterKeyFile(masterKeyPath(config), keys.backup);
      await going.write();
      await putInPlace(config, staged, lines);
    }
    return { ...said, lostEntries: going.lost, erasuresToRepeat: undone };
  } finally {
    removeStaging(staged);
  }
}

/**
 * Puts a backup in place of the database of a data directory, or into an empty one. Everything is verified before
 * anything is touched; the old database stays aside until the new one has opened.
 * @throws {BackupFailed} {DamagedBackup} {ConfigError}
 */
export async function restoreBackup(
  config: Config,
  file: string,
  options: RestoreOptions,
): Promise<Restored> {
  const source = { file, head: await readHead(file), keys: readKeys(config, options.keyFile) };
  const made = !existsSync(config.data_dir);
  makeDataDirectory(config);
  removeLeftStaging(config.data_dir);
  const restore = () => restoreFrom(source, config, options);
  try {
    return await (options.dryRun
      ? restore()
      : withDataAlone(config, restore, () => inUse(sqliteFile(config))));
  } finally {
    if (made && readdirSync(config.data_dir).length === 0) rmdirSync(config.data_dir);
  }
}
