import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { writeActForAll } from '../audit/store.ts';
import { type Config, ConfigError, databaseLocation, sqliteFile } from '../config.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import { quickCheck } from '../db/files.ts';
import { LAST_BACKUP, writeMeta } from '../db/meta-store.ts';
import { refusalOf, schemaState } from '../db/migrate.ts';
import { createMasterKey, type MasterKey } from '../keys/master-key.ts';
import { equalBytes } from '../lib/crypto.ts';
import { withClosing } from '../lib/functions.ts';
import { createLostLines, endAllSessions, endKeysOfLines } from '../rights/erase/ended.ts';
import {
  erasureLog,
  erasureLogKey,
  judgeLines,
  mergeLines,
  outsideOf,
  readErasureFile,
  requireWholeLog,
  scanErasureLog,
  scanErasures,
  textLines,
  writeErasureCount,
} from '../rights/erase/erasure-log.ts';
import { readServerSecret } from '../tenants/installation-files.ts';
import { operatorsOf } from '../tenants/secrets.ts';
import { BackupFailed, type BackupHead, DamagedBackup } from './backup-stream.ts';
import { planGoingOn } from './checkpoints-service.ts';
import { openBook } from './restore-swap.ts';
import { rewrapAll } from './rewrap-store.ts';

/** The copy of a backup is made ready to take the database's place: what was ended since the backup is ended in it again. */

export interface Keys {
  readonly backup: Buffer;
  /** Null: missing; the backup's is used. */
  readonly current: Buffer | null;
}

export interface Source {
  readonly file: string;
  readonly head: BackupHead;
  readonly keys: Keys;
}

async function checkStaged(file: string, database: Database, masterKey: MasterKey): Promise<Buffer> {
  const wrong = await quickCheck(database);
  if (wrong.length > 0)
    throw new DamagedBackup(file, `its database is damaged (${wrong[0]}); use another backup`);
  const { unknown } = await schemaState(database);
  if (unknown.length > 0) {
    throw new BackupFailed(`${file} ${refusalOf(unknown)}`);
  }
  const secret = await readServerSecret(database, masterKey);
  if (secret === null) throw new DamagedBackup(file, 'its database was never initialised');
  return secret;
}

/** What the database that will be replaced finds in this directory's log; null: it is damaged or missing. */
async function checkOurs(config: Config, current: Buffer | null) {
  if (current === null || (config.database_url === null && !existsSync(sqliteFile(config)))) return null;
  return withClosing(openDatabase({ location: databaseLocation(config) }), async (database) => {
    const serverSecret = await readServerSecret(database, createMasterKey(current, randomBytes));
    return serverSecret && (await scanErasureLog(outsideOf({ database, serverSecret }, config)));
  }).catch(() => null);
}

/** The lines of both. @throws {ConfigError} for a line of ours that was changed or is missing, and for a backup from before a dropped one */
async function mergeLogs(config: Config, { head, keys }: Source, carried: readonly string[], logKey: Buffer) {
  const log = erasureLog({ dataDir: config.data_dir, logKey });
  const ours = textLines(readErasureFile(config).toString());
  const found = (await checkOurs(config, keys.current)) ?? (await scanErasures(judgeLines(log, ours), null));
  requireWholeLog(found.problem, log.path);
  const { createdAt } = head.header;
  if (Date.parse(createdAt) < Date.parse(found.droppedUntil))
    throw new ConfigError(
      `${log.path} has dropped its lines until ${found.droppedUntil}: erasures since the backup of ${createdAt} could not be repeated; use a newer backup`,
    );
  // A damaged line that the backup carries is done in its own database.
  return { log, lines: mergeLines(log, ours, carried) };
}

/** Opens the copy under its own key, and wraps it with the directory's where that is another. */
export async function prepareStaged(
  source: Source,
  config: Config,
  staged: { readonly path: string; readonly carried: readonly string[] },
  by: { readonly account: string; readonly at: number },
) {
  const { file, head, keys } = source;
  return withClosing(openDatabase({ location: staged.path }), async (database) => {
    const masterKey = createMasterKey(keys.backup, randomBytes);
    const secret = await checkStaged(file, database, masterKey);
    const book = await openBook(config.data_dir, secret);
    const plan = await planGoingOn({ database, masterKey, book, now: by.at });
    const logKey = erasureLogKey(secret);
    const { lines, log } = await mergeLogs(config, source, staged.carried, logKey);
    const lost = await createLostLines(database, by.at);
    const { last: count } = await scanErasures(judgeLines(log, lines), null, lost.take);
    // The data are wrapped with the master key of the data directory instead of the backup's.
    const other = keys.current !== null && !equalBytes(keys.current, keys.backup) ? keys.current : null;
    // The backup that a database came from is its last one: it was noted after the copy was taken.
    const last = JSON.stringify({ at: Date.parse(head.header.createdAt), bytes: statSync(file).size });
    const act = { actorOf: await operatorsOf({ database, masterKey }, by.account), at: by.at };
    const back = await database.transaction(async (tx) => {
      await writeMeta(tx, LAST_BACKUP, last);
      await writeErasureCount(tx, logKey, count);
      const { createdAt, gpd } = head.header;
      await writeActForAll(tx, act, 'restore.done', { backup: createdAt, gpd });
      await endAllSessions(tx, by.at);
      return endKeysOfLines(tx, lost.keys);
    });
    if (other) await rewrapAll(database, masterKey, createMasterKey(other, randomBytes), secret, act);
    // Written before the database changes places: a crash in between makes no line void that it needs.
    const going = { lost: plan.losses, write: () => book.keepAfterLoss(plan.lines) };
    const [undone, holds] = [lost.countErasures(), lost.holds.length];
    return { rewrapped: other !== null, undone, holds, going, lines, back };
  });
}
