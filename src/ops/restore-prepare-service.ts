import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { writeActForAll } from '../audit/store.ts';
import { type Config, databaseLocation, sqliteFile } from '../config.ts';
import { type Database, openDatabase } from '../db/db.ts';
import { quickCheck } from '../db/file-copy.ts';
import { LAST_BACKUP, writeMeta } from '../db/meta-store.ts';
import { refusalOf, schemaState } from '../db/migrate.ts';
import { type MasterKey, makeMasterKey } from '../keys/master-key.ts';
import { closing } from '../lib/closing.ts';
import { equalBytes } from '../lib/hash.ts';
import {
  checkLines,
  type ErasureLog,
  erasureLogKey,
  mergeLines,
} from '../rights/erase/erasure-chain-service.ts';
import { applyCuts, cutOff, putLogHead, readLogHead } from '../rights/erase/erasure-head-store.ts';
import {
  countUndone,
  lostHolds,
  readErasureLines,
  requireWhole,
  tombstoneFile,
} from '../rights/erase/tombstone-files.ts';
import { readServerSecret } from '../tenants/installation-files.ts';
import { operatorsOf } from '../tenants/operators-service.ts';
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

/** What the database that will be replaced knows of this directory's log; null: it is damaged or missing. */
async function checkOurs(config: Config, current: Buffer | null): Promise<ErasureLog | null> {
  if (current === null || (config.database_url === null && !existsSync(sqliteFile(config)))) return null;
  const lines = readErasureLines(config);
  return closing(openDatabase({ location: databaseLocation(config) }), async (database) => {
    const secret = await readServerSecret(database, makeMasterKey(current, randomBytes));
    const key = secret && erasureLogKey(secret);
    return key && checkLines(lines, key, await readLogHead(database, key, lines));
  }).catch(() => null);
}

/** The lines of both, checked against their chains. @throws {ConfigError} for a line of ours that was changed or is missing */
async function mergeLogs(
  config: Config,
  current: Buffer | null,
  carried: readonly string[],
  key: Uint8Array,
) {
  const ours = readErasureLines(config);
  requireWhole((await checkOurs(config, current)) ?? checkLines(ours, key), tombstoneFile(config.data_dir));
  // A damaged line that the backup carries is done in its own database; it stays for who restores an older one.
  const lines = mergeLines(ours, carried, key);
  return { lines, log: checkLines(lines, key) };
}

/** Opens the copy under its own key, and wraps it with the directory's where that is another. */
export async function prepareStaged(
  { file, head, keys }: Source,
  config: Config,
  staged: { readonly path: string; readonly carried: readonly string[] },
  by: { readonly account: string; readonly at: number },
) {
  return closing(openDatabase({ location: staged.path }), async (database) => {
    const masterKey = makeMasterKey(keys.backup, randomBytes);
    const secret = await checkStaged(file, database, masterKey);
    const book = await openBook(config.data_dir, secret);
    const plan = await planGoingOn({ database, masterKey, book, now: by.at });
    const logKey = erasureLogKey(secret);
    const { lines, log } = await mergeLogs(config, keys.current, staged.carried, logKey);
    // The data are wrapped with the master key of the data directory instead of the backup's.
    const other = keys.current !== null && !equalBytes(keys.current, keys.backup) ? keys.current : null;
    // The backup that a database came from is its last one: it was noted after the copy was taken.
    const last = JSON.stringify({ at: Date.parse(head.header.createdAt), bytes: statSync(file).size });
    const act = { actorOf: await operatorsOf({ database, masterKey }, by.account), at: by.at };
    const back = await database.transaction(async (tx) => {
      await writeMeta(tx, LAST_BACKUP, last);
      await putLogHead(tx, logKey, log.head);
      const { createdAt, gpd } = head.header;
      await writeActForAll(tx, act, 'restore.done', { backup: createdAt, gpd });
      await cutOff(tx, by.at);
      return applyCuts(tx, log.cuts);
    });
    if (other) await rewrapAll(database, masterKey, makeMasterKey(other, randomBytes), secret, act);
    // Written before the database changes places: a crash in between makes no line void that it needs.
    const going = { lost: plan.lost, write: () => book.keepAfterLoss(plan.lines) };
    const undone = await countUndone(database, log.tombstones);
    const holds = (await lostHolds(database, log.holds, by.at)).length;
    return { rewrapped: other !== null, undone, holds, going, lines, back };
  });
}
