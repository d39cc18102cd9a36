import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { writeActForAll } from '../audit/audit-store.ts';
import { type Config, ConfigError, databaseLocation, sqliteFile } from '../config.ts';
import { quickCheck } from '../db/database-file.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import { foreignText, readForeignObjects } from '../db/foreign-objects.ts';
import { LAST_BACKUP, writeMeta } from '../db/meta-store.ts';
import { refusalOf, schemaState } from '../db/migrate.ts';
import { createMasterKey, type MasterKey } from '../keys/master-key.ts';
import { withClosing } from '../lib/collections.ts';
import { equalBytes } from '../lib/crypto.ts';
import { createLineCollector, endAllSessions, endKeysOfLines } from '../rights/erase/ended-store.ts';
import {
  erasureLog,
  erasureLogAccess,
  erasureLogKey,
  judgeLines,
  mergeLines,
  readErasureFile,
  requireWholeLog,
  scanErasureLog,
  scanErasures,
  textLines,
  writeErasureCount,
} from '../rights/erase/erasure-log-service.ts';
import { TABLES } from '../rights/person-map.ts';
import { readServerSecret } from '../tenants/installation-files.ts';
import { createOperatorLookup } from '../tenants/secrets-store.ts';
import { BackupFailed, type BackupHead, DamagedBackup } from './backup-stream-files.ts';
import { planContinuation } from './checkpoints-service.ts';
import { openCheckpointBook } from './restore-swap-service.ts';
import { rewrapAll } from './rewrap-store.ts';

/**
 * Prepares the unpacked database of a backup: keys, sessions and staff that ended after the backup are ended
 * in it again.
 */

export interface RestoreKeys {
  readonly backup: Buffer;
  /** Master key of the data directory; null: missing, the backup's key is used. */
  readonly current: Buffer | null;
}

export interface RestoreSource {
  readonly file: string;
  readonly head: BackupHead;
  readonly keys: RestoreKeys;
}

async function checkStagedDatabase(file: string, database: Database, masterKey: MasterKey): Promise<Buffer> {
  const faults = await quickCheck(database);
  if (faults.length > 0)
    throw new DamagedBackup(file, `its database is damaged (${faults[0]}); use another backup`);
  const { unknown } = await schemaState(database);
  if (unknown.length > 0) {
    throw new BackupFailed(`${file} ${refusalOf(unknown)}`);
  }
  const objects = await readForeignObjects(database, TABLES);
  if (objects.length > 0) throw new BackupFailed(`${file} ${foreignText(objects)}`);
  const secret = await readServerSecret(database, masterKey);
  if (secret === null) throw new DamagedBackup(file, 'its database was never initialised');
  return secret;
}

/**
 * Checks this directory's erasures.log with the database that is to be replaced.
 * @returns null where that is damaged or missing
 */
async function scanCurrentLog(config: Config, current: Buffer | null) {
  if (current === null || (config.database_url === null && !existsSync(sqliteFile(config)))) return null;
  return withClosing(openDatabase({ location: databaseLocation(config) }), async (database) => {
    const serverSecret = await readServerSecret(database, createMasterKey(current, randomBytes));
    return serverSecret && (await scanErasureLog(erasureLogAccess({ database, serverSecret }, config)));
  }).catch(() => null);
}

/**
 * Merges the lines of the directory and the backup.
 * @throws {ConfigError} if a line was changed, is missing, or was dropped after the backup
 */
async function mergeLogs(
  config: Config,
  { head, keys }: RestoreSource,
  backupLines: readonly string[],
  logKey: Buffer,
) {
  const log = erasureLog({ dataDir: config.data_dir, logKey });
  const currentLines = textLines(readErasureFile(config).toString());
  const scan =
    (await scanCurrentLog(config, keys.current)) ?? (await scanErasures(judgeLines(log, currentLines), null));
  requireWholeLog(scan.problem, log.path);
  const { createdAt } = head.header;
  if (Date.parse(createdAt) < Date.parse(scan.droppedUntil))
    throw new ConfigError(
      `${log.path} has dropped its lines until ${scan.droppedUntil}: erasures since the backup of ${createdAt} could not be repeated; use a newer backup`,
    );
  // A damaged line of the backup needs no check: its erasure is already done in the backup's database.
  return { log, lines: mergeLines(log, currentLines, backupLines) };
}

/**
 * Opens the unpacked database with the backup's key, and wraps it with the directory's key if that differs.
 */
export async function prepareStaged(
  source: RestoreSource,
  config: Config,
  staged: { readonly path: string; readonly backupLines: readonly string[] },
  by: { readonly account: string; readonly at: number },
) {
  const { file, head, keys } = source;
  return withClosing(openDatabase({ location: staged.path }), async (database) => {
    const masterKey = createMasterKey(keys.backup, randomBytes);
    const secret = await checkStagedDatabase(file, database, masterKey);
    const book = await openCheckpointBook(config.data_dir, secret);
    const plan = await planContinuation({ database, masterKey, book, now: by.at });
    const logKey = erasureLogKey(secret);
    const { lines, log } = await mergeLogs(config, source, staged.backupLines, logKey);
    const lostLines = await createLineCollector(database, by.at);
    const { last: count } = await scanErasures(judgeLines(log, lines), null, lostLines.collect);
    // Null if the data directory has no master key or the same one: then nothing is wrapped again.
    const directoryKey =
      keys.current !== null && !equalBytes(keys.current, keys.backup) ? keys.current : null;
    // The copy was taken before its own backup was recorded, so that is recorded here.
    const last = JSON.stringify({ at: Date.parse(head.header.createdAt), bytes: statSync(file).size });
    const act = { actorOf: await createOperatorLookup({ database, masterKey }, by.account), at: by.at };
    const endedAgain = await database.transaction(async (tx) => {
      await writeMeta(tx, LAST_BACKUP, last);
      await writeErasureCount(tx, logKey, count);
      const { createdAt, gpd } = head.header;
      await writeActForAll(tx, act, 'restore.done', { backup: createdAt, gpd });
      await endAllSessions(tx, by.at);
      return endKeysOfLines(tx, lostLines.keys);
    });
    if (directoryKey)
      await rewrapAll(database, masterKey, createMasterKey(directoryKey, randomBytes), secret, act);
    // The caller writes these lines before it replaces the database. After a crash in between, the old
    // database still has its own.
    const checkpoints = { losses: plan.losses, write: () => book.keepAfterLoss(plan.lines) };
    const [erasuresToRepeat, holdsToRepeat] = [lostLines.countErasures(), lostLines.holds.length];
    return {
      rewrapped: directoryKey !== null,
      erasuresToRepeat,
      holdsToRepeat,
      checkpoints,
      lines,
      endedAgain,
    };
  });
}
