import { randomBytes } from 'node:crypto';
import { createWriteStream, existsSync, readdirSync, rmdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Config, ConfigError, sqliteFile } from '../config.ts';
import { removeAbandonedStaging, removeStaging, stagingFile, syncPath } from '../db/files.ts';
import { openBackup } from '../keys/backup-format.ts';
import { createMasterKey, type MasterKey } from '../keys/master-key.ts';
import { textLines } from '../rights/erase/erasure-log.ts';
import { createDataDirectory, withExclusiveData } from '../tenants/installation-files.ts';
import {
  masterKeyPath,
  readMasterKey,
  readMasterKeyFile,
  writeMasterKeyFile,
} from '../tenants/master-key-files.ts';
import { DATABASE_PART, ERASURES_PART, type OnProgress, requireRoom } from './backup.ts';
import { type BackupHead, DamagedBackup, decryptBytes, inUse, readHead } from './backup-stream.ts';
import { type Keys, prepareStaged, type Source } from './restore-prepare-service.ts';
import { claimOld, claimPostgres, foldOrThrow, putInPlace, putInPostgres } from './restore-swap.ts';

export interface RestoreOptions {
  /** The backup's master key, where the data directory has none or another one. */
  readonly keyFile?: string | undefined;
  /** Verifies and changes nothing. */
  readonly dryRun: boolean;
  readonly onProgress: OnProgress;
  /** Account at the command line, and the time. */
  readonly by: { readonly account: string; readonly at: number };
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
      'it has parts that this gpd does not know: restore it with the gpd that made it',
    );
  }
  const rest: Uint8Array[] = [];
  const content = firstPart(decryptBytes(file, head, cipher), database.bytes, rest, onProgress);
  await pipeline(
    Readable.from(content),
    createWriteStream(staged, { flags: 'wx', mode: 0o600, flush: true }),
  );
  const lines = Buffer.concat(rest);
  if (statSync(staged).size !== database.bytes || lines.length !== log.bytes) {
    throw new DamagedBackup(file, 'it is not complete; use another backup');
  }
  return textLines(lines.toString());
}

async function restoreFrom({ file, head, keys }: Source, config: Config, options: RestoreOptions) {
  const { database_url: url } = config;
  if (!options.dryRun) await (url === null ? claimOld(sqliteFile(config)) : claimPostgres(url));
  const staged = stagingFile(config.data_dir, 'restore.db');
  try {
    requireRoom(config.data_dir, head.header.parts[0]?.bytes ?? 0);
    const backupKey = createMasterKey(keys.backup, randomBytes);
    const carried = await unpack(file, head, backupKey, staged, options.onProgress);
    options.onProgress('checking', 0, 0);
    const made = await prepareStaged({ file, head, keys }, config, { path: staged, carried }, options.by);
    const { rewrapped, undone, holds, going, lines, back } = made;
    await foldOrThrow(staged);
    syncPath(staged);
    const { createdAt, gpd } = head.header;
    const said = { file, dataDir: config.data_dir, createdAt, gpd, rewrapped, dryRun: options.dryRun };
    if (!options.dryRun) {
      if (keys.current === null) writeMasterKeyFile(masterKeyPath(config), keys.backup);
      await going.write();
      await (url === null ? putInPlace(config, staged, lines) : putInPostgres(config, url, staged, lines));
    }
    return {
      ...said,
      ...back,
      /** Logs of which a checkpoint over more entries was signed: anyone who kept it can prove that they are missing. */
      lostEntries: going.lost,
      /** What came after the backup: `gpd serve` repeats it before it listens. */
      erasuresToRepeat: undone,
      holdsToRepeat: holds,
    };
  } finally {
    removeStaging(staged);
  }
}

/**
 * Puts a backup in place of the database of a data directory, or into an empty one. Everything is verified before
 * anything is touched; the old database stays aside until the new one has opened.
 * @throws {BackupFailed} {DamagedBackup} {ConfigError}
 */
export async function restoreBackup(config: Config, file: string, options: RestoreOptions) {
  const source = { file, head: await readHead(file), keys: readKeys(config, options.keyFile) };
  const made = !existsSync(config.data_dir);
  createDataDirectory(config);
  removeAbandonedStaging(config.data_dir);
  const restore = () => restoreFrom(source, config, options);
  try {
    return await (options.dryRun
      ? restore()
      : withExclusiveData(config, restore, () => inUse(sqliteFile(config))));
  } finally {
    if (made && readdirSync(config.data_dir).length === 0) rmdirSync(config.data_dir);
  }
}
