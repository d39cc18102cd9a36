import { randomBytes } from 'node:crypto';
import { createWriteStream, existsSync, readdirSync, rmdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Config, ConfigError, sqliteFile } from '../config.ts';
import { refuseLink, syncPath } from '../db/own-files.ts';
import { removeAbandonedStaging, removeStaging, stagingFile } from '../db/staging-files.ts';
import { openBackup } from '../keys/backup-format.ts';
import { createMasterKey, type MasterKey } from '../keys/master-key.ts';
import { textLines } from '../rights/erase/erasure-log-service.ts';
import { createDataDirectory, withExclusiveData } from '../tenants/installation-files.ts';
import {
  masterKeyPath,
  readMasterKey,
  readMasterKeyFile,
  writeMasterKeyFile,
} from '../tenants/master-key-files.ts';
import { DATABASE_PART, ERASURES_PART, type OnProgress, requireRoom } from './backup-service.ts';
import { type BackupHead, DamagedBackup, decryptBytes, inUse, readHead } from './backup-stream-files.ts';
import { prepareStaged, type RestoreKeys, type RestoreSource } from './restore-prepare-service.ts';
import {
  claimCurrentFile,
  claimPostgres,
  replacePostgres,
  replaceSqlite,
  requireSingleFile,
} from './restore-swap-service.ts';

/**
 * `gpd restore`: verifies and unpacks a backup, then lets it replace the database (restore-prepare-service,
 * restore-swap).
 */

export interface RestoreOptions {
  /** File of the backup's master key, where the data directory has none or another one. */
  readonly keyFile?: string | undefined;
  /** Verifies and changes nothing. */
  readonly dryRun: boolean;
  readonly onProgress: OnProgress;
  /** Account at the command line, and the time. */
  readonly by: { readonly account: string; readonly at: number };
}

function readKeys(config: Config, keyFile: string | undefined): RestoreKeys {
  const path = masterKeyPath(config);
  if (!existsSync(path)) refuseLink(path);
  const current = existsSync(path) || keyFile === undefined ? readMasterKey(config) : null;
  if (keyFile === undefined) return { backup: readMasterKey(config), current };
  if (current === null && dirname(path) !== config.data_dir) readMasterKeyFile(path);
  return { backup: readMasterKeyFile(keyFile), current };
}

/** Yields the first `size` bytes of the stream and adds the others to `laterParts`. */
async function* firstPart(
  source: AsyncIterable<Buffer>,
  size: number,
  laterParts: Uint8Array[],
  onProgress: OnProgress,
): AsyncGenerator<Uint8Array> {
  let done = 0;
  for await (const bytes of source) {
    const remaining = Math.max(0, size - done);
    done += bytes.length;
    onProgress('writing', Math.min(done, size), size);
    if (remaining > 0) yield bytes.subarray(0, remaining);
    if (bytes.length > remaining) laterParts.push(bytes.subarray(remaining));
  }
}

/** Decrypts the database into the file `staged`. @returns the lines of the backup's erasures.log */
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
      'it has parts that this gpd does not know: restore it with the gpd that made it',
    );
  }
  const laterParts: Uint8Array[] = [];
  const content = firstPart(decryptBytes(file, head, cipher), database.bytes, laterParts, onProgress);
  await pipeline(
    Readable.from(content),
    createWriteStream(staged, { flags: 'wx', mode: 0o600, flush: true }),
  );
  const lines = Buffer.concat(laterParts);
  if (statSync(staged).size !== database.bytes || lines.length !== log.bytes) {
    throw new DamagedBackup(file, 'it is not complete; use another backup');
  }
  return textLines(lines.toString());
}

async function restoreFrom({ file, head, keys }: RestoreSource, config: Config, options: RestoreOptions) {
  const { database_url: url } = config;
  if (!options.dryRun) await (url === null ? claimCurrentFile(sqliteFile(config)) : claimPostgres(url));
  const staged = stagingFile(config.data_dir, 'restore.db');
  try {
    requireRoom(config.data_dir, head.header.parts[0]?.bytes ?? 0);
    const backupKey = createMasterKey(keys.backup, randomBytes);
    const backupLines = await unpack(file, head, backupKey, staged, options.onProgress);
    options.onProgress('checking', 0, 0);
    const prepared = await prepareStaged(
      { file, head, keys },
      config,
      { path: staged, backupLines },
      options.by,
    );
    const { rewrapped, erasuresToRepeat, holdsToRepeat, checkpoints, lines, endedAgain } = prepared;
    await requireSingleFile(staged);
    syncPath(staged);
    const { createdAt, gpd } = head.header;
    const summary = { file, dataDir: config.data_dir, createdAt, gpd, rewrapped, dryRun: options.dryRun };
    if (!options.dryRun) {
      if (keys.current === null) writeMasterKeyFile(masterKeyPath(config), keys.backup);
      await checkpoints.write();
      await (url === null
        ? replaceSqlite(config, staged, lines)
        : replacePostgres(config, url, staged, lines));
    }
    return {
      ...summary,
      ...endedAgain,
      /**
       * Logs for which a checkpoint over more entries was signed: anyone who kept it can prove that entries
       * are missing.
       */
      lostEntries: checkpoints.losses,
      /** Erasures and legal holds since the backup, which `gpd serve` repeats before it listens. */
      erasuresToRepeat: erasuresToRepeat,
      holdsToRepeat,
    };
  } finally {
    removeStaging(staged);
  }
}

/**
 * Replaces the database of a data directory by a backup, or fills an empty directory. It changes nothing
 * before the whole backup is verified, and keeps the old database until the new one has opened.
 * @throws {BackupFailed} {DamagedBackup} {ConfigError}
 */
export async function restoreBackup(config: Config, file: string, options: RestoreOptions) {
  const source = { file, head: await readHead(file), keys: readKeys(config, options.keyFile) };
  const isNewDirectory = !existsSync(config.data_dir);
  createDataDirectory(config);
  removeAbandonedStaging(config.data_dir);
  const restore = () => restoreFrom(source, config, options);
  try {
    return await (options.dryRun
      ? restore()
      : withExclusiveData(config, restore, () => inUse(sqliteFile(config))));
  } finally {
    if (isNewDirectory && readdirSync(config.data_dir).length === 0) rmdirSync(config.data_dir);
  }
}
