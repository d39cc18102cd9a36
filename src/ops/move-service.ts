import { randomBytes } from 'node:crypto';
import { type Config, databaseLocation, sqliteFile } from '../config.ts';
import { locationName } from '../db/availability.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import { refuseForeignObjects } from '../db/foreign-objects.ts';
import { dropMeta, listKids, MOVED, MOVING, readMeta, writeMeta } from '../db/meta-store.ts';
import { migrate } from '../db/migrate.ts';
import { createMasterKey, SERVER_SECRET } from '../keys/master-key.ts';
import { signedCheckpoint } from '../ledger/note.ts';
import { withClosing } from '../lib/collections.ts';
import { sha256Text } from '../lib/crypto.ts';
import { newestCheckpoint } from '../log/checkpoint-store.ts';
import { readHead } from '../log/entries-store.ts';
import { collectProblems } from '../log/problems.ts';
import { walkLog } from '../log/walk-service.ts';
import { TABLES } from '../rights/person-map.ts';
import { notInitialised, readServerSecret, withExclusiveData } from '../tenants/installation-files.ts';
import { readMasterKey } from '../tenants/master-key-files.ts';
import { BackupFailed, inUse } from './backup-stream-files.ts';
import {
  analyze,
  COPIED_TABLES,
  compareRows,
  copyMeta,
  copyRows,
  countRows,
  emptyTables,
} from './copy-store.ts';
import { requireAlone } from './restore-swap-service.ts';

/**
 * `gpd move`: copies all data of a stopped installation into a database of the other kind. Unlike a restore
 * it keeps sessions and does not make older bundles stale.
 */

/** @param total twice the number of rows, because each is copied and compared */
export type OnRows = (done: number, total: number) => void;

/**
 * @returns the root of each log in base64, as in a checkpoint @throws {BackupFailed} when a log differs from
 * the source or is damaged
 */
async function compareLogs(source: Database, target: Database) {
  const logs = [];
  for (const kid of await listKids(target)) {
    const [sourceHead, targetHead] = [await readHead(source, kid), await readHead(target, kid)];
    const newest = await newestCheckpoint(target, kid);
    const signed = targetHead && newest && signedCheckpoint(newest.text, targetHead.vkey);
    const sizes = new Set([newest?.size ?? 0]);
    const problems = collectProblems();
    const walked =
      targetHead && (await walkLog(target, kid, targetHead, { sizes, problems, onPage: async () => {} }));
    const isSigned = signed && walked?.roots.get(signed.size)?.equals(signed.root);
    if (!targetHead || !sourceHead?.root.equals(targetHead.root) || problems.found.length > 0 || !isSigned)
      throw new BackupFailed(
        `the log of ${kid} is damaged: see gpd consent verify ${kid}; nothing was moved`,
      );
    logs.push({ kid, size: targetHead.size, root: targetHead.root.toString('base64') });
  }
  return logs;
}

const targetNotEmpty = (): BackupFailed =>
  new BackupFailed('the target already holds an installation: name an empty database', true);

/**
 * Notes the move in the target, so that no server starts on it.
 * @param source hash of the wrapped secret: identifies the installation
 */
async function reserveTarget(target: Database, source: string): Promise<void> {
  const currentSource = await readMeta(target, MOVING);
  if (currentSource === source) return;
  if (currentSource !== null)
    throw new BackupFailed(
      'another move into the target was interrupted: repeat that one, or empty the target',
      true,
    );
  if ((await readMeta(target, SERVER_SECRET)) !== null) throw targetNotEmpty();
  await target.transaction((tx) => writeMeta(tx, MOVING, source));
}

/**
 * Copies the first table that differs and all later ones, which may refer to it. Then it compares all tables.
 */
async function copyAndCompare(source: Database, target: Database, onRows: OnRows) {
  const total = 2 * (await countRows(source.read));
  let done = 0;
  const addRows = (rows: number): void => {
    done += rows;
    onRows(done, total);
  };
  const { differs: start } = await compareRows(source.read, target.read, addRows);
  const tables = start === null ? [] : COPIED_TABLES.slice(COPIED_TABLES.indexOf(start));
  if (tables.length > 0) await target.transaction((tx) => emptyTables(tx, tables));
  await copyRows(source.read, (work) => target.transaction(work), { tables, onRows: addRows });
  const { rows, differs } = await compareRows(source.read, target.read, addRows);
  if (differs !== null) throw new BackupFailed(`${differs} differs in the target: nothing was moved`);
  return rows;
}

async function moveInto(config: Config, source: Database, target: Database, to: string, onRows: OnRows) {
  const wrapped = await readMeta(source, SERVER_SECRET);
  const masterKey = createMasterKey(readMasterKey(config), randomBytes);
  if (wrapped === null || (await readServerSecret(source, masterKey)) === null) throw notInitialised(config);
  await requireAlone(source, locationName(databaseLocation(config)));
  await Promise.all([migrate(source), migrate(target)]);
  for (const database of [source, target]) await refuseForeignObjects(database, TABLES);
  const name = locationName(to);
  const moved = await readMeta(source, MOVED);
  if (moved !== null && (moved !== name || (await readMeta(target, MOVING)) === null))
    throw new BackupFailed(`the data was already moved to ${moved}`, true);
  await reserveTarget(target, sha256Text(wrapped));
  const rows = await copyAndCompare(source, target, onRows);
  const logs = await compareLogs(source, target);
  await target.transaction((tx) => copyMeta(source.read, tx));
  await source.transaction((tx) => writeMeta(tx, MOVED, name));
  // Last: if both databases could serve at once, each would miss the writes of the other.
  await target.transaction((tx) => dropMeta(tx, MOVING));
  await analyze(target);
  return { from: locationName(databaseLocation(config)), to: name, rows, logs };
}

/**
 * Resumes an interrupted move: tables that were copied before and have not changed are only compared.
 * Afterwards no server starts on the source.
 * @param to `postgres://…`, or the file of a new SQLite database
 * @throws {BackupFailed} {ConfigError}
 */
export function move(config: Config, to: string, onRows: OnRows) {
  const work = () =>
    withClosing(openDatabase({ location: databaseLocation(config) }), (source) =>
      withClosing(openDatabase({ location: to, create: true }), (target) =>
        moveInto(config, source, target, to, onRows),
      ),
    );
  return config.database_url === null
    ? withExclusiveData(config, work, () => inUse(sqliteFile(config)))
    : work();
}

/** @throws {BackupFailed} when there is an installation already */
export async function requireEmpty(url: string): Promise<void> {
  await withClosing(openDatabase({ location: url }), async (target) => {
    await migrate(target);
    await refuseForeignObjects(target, TABLES);
    if ((await readMeta(target, SERVER_SECRET)) !== null) throw targetNotEmpty();
  });
}
