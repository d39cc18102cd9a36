import { randomBytes } from 'node:crypto';
import { type Config, databaseLocation, sqliteFile } from '../config.ts';
import { locationName } from '../db/availability.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import { dropMeta, listKids, MOVED, MOVING, readMeta, writeMeta } from '../db/meta-store.ts';
import { migrate } from '../db/migrate.ts';
import { createMasterKey, SERVER_SECRET } from '../keys/master-key.ts';
import { parseVkey, verifyCheckpoint } from '../ledger/note.ts';
import { withClosing } from '../lib/collections.ts';
import { sha256Text } from '../lib/crypto.ts';
import { collectProblems, readHead } from '../log/entries.ts';
import { walkLog } from '../log/walk-service.ts';
import { notInitialised, readServerSecret, withExclusiveData } from '../tenants/installation-files.ts';
import { readMasterKey } from '../tenants/master-key-files.ts';
import { BackupFailed, inUse } from './backup-stream.ts';
import { analyze, COPIED, compareRows, copyMeta, copyRows, countRows, emptyTables } from './copy-store.ts';
import { requireAlone } from './restore-swap.ts';

/**
 * All data of a stopped installation in a database of the other kind, by the copy that backups and restores of PostgreSQL make too. A
 * restore would do more than that: it ends sessions and makes older bundles stale.
 */

/** Rows copied and compared, of twice their number. */
export type OnRows = (done: number, total: number) => void;

/** @returns the root of each log in base64, as in a checkpoint. @throws {BackupFailed} when rows or logs of the target differ from those of the source */
async function compareLogs(source: Database, target: Database) {
  const logs = [];
  for (const kid of await listKids(target)) {
    const [ours, theirs] = [await readHead(source, kid), await readHead(target, kid)];
    const size = theirs?.checkpoint?.size ?? 0;
    const problems = collectProblems();
    const walked =
      theirs &&
      (await walkLog(target, kid, theirs, { sizes: new Set([size]), problems, onPage: async () => {} }));
    const key = theirs && parseVkey(theirs.vkey);
    const signed = key && theirs.checkpoint ? verifyCheckpoint(theirs.checkpoint.text, key) : null;
    const isSigned = signed?.ok && walked?.roots.get(size)?.equals(signed.checkpoint.root);
    if (!theirs || !ours?.root.equals(theirs.root) || problems.found.length > 0 || !isSigned)
      throw new BackupFailed(
        `the log of ${kid} is damaged: see gpd consent verify ${kid}; nothing was moved`,
      );
    logs.push({ kid, size: theirs.size, root: theirs.root.toString('base64') });
  }
  return logs;
}

const notEmpty = (): BackupFailed =>
  new BackupFailed('the target already holds an installation: name an empty database', true);

/** Until the move is done, the target serves nobody. @param source which installation: hash of its wrapped secret */
async function begin(target: Database, source: string): Promise<void> {
  const begun = await readMeta(target, MOVING);
  if (begun === source) return;
  if (begun !== null)
    throw new BackupFailed(
      'another move into the target was interrupted: repeat that one, or empty the target',
      true,
    );
  if ((await readMeta(target, SERVER_SECRET)) !== null) throw notEmpty();
  await target.transaction((tx) => writeMeta(tx, MOVING, source));
}

/** Copies all tables from the first one on that differs: behind it are those that refer to it. Then compares all of them. */
async function fill(source: Database, target: Database, onRows: OnRows) {
  const total = 2 * (await countRows(source.read));
  let done = 0;
  const note = (rows: number): void => {
    done += rows;
    onRows(done, total);
  };
  const { differs: start } = await compareRows(source.read, target.read, note);
  const tables = start === null ? [] : COPIED.slice(COPIED.indexOf(start));
  if (tables.length > 0) await target.transaction((tx) => emptyTables(tx, tables));
  await copyRows(source.read, (work) => target.transaction(work), { tables, onRows: note });
  const { rows, differs } = await compareRows(source.read, target.read, note);
  if (differs !== null) throw new BackupFailed(`${differs} differs in the target: nothing was moved`);
  return rows;
}

async function moveInto(config: Config, source: Database, target: Database, to: string, onRows: OnRows) {
  const wrapped = await readMeta(source, SERVER_SECRET);
  const masterKey = createMasterKey(readMasterKey(config), randomBytes);
  if (wrapped === null || (await readServerSecret(source, masterKey)) === null) throw notInitialised(config);
  await requireAlone(source, locationName(databaseLocation(config)));
  await Promise.all([migrate(source), migrate(target)]);
  const name = locationName(to);
  const moved = await readMeta(source, MOVED);
  if (moved !== null && (moved !== name || (await readMeta(target, MOVING)) === null))
    throw new BackupFailed(`the data was already moved to ${moved}`, true);
  await begin(target, sha256Text(wrapped));
  const rows = await fill(source, target, onRows);
  const logs = await compareLogs(source, target);
  await target.transaction((tx) => copyMeta(source.read, tx));
  await source.transaction((tx) => writeMeta(tx, MOVED, name));
  // Only now: of two databases that could both serve, one would lose what the other takes.
  await target.transaction((tx) => dropMeta(tx, MOVING));
  await analyze(target);
  return { from: locationName(databaseLocation(config)), to: name, rows, logs };
}

/**
 * Repeats an interrupted move; the tables that it had copied and that have not changed are only compared. The source is marked and serves nobody any more.
 * @param to `postgres://…`, or the file of an SQLite database that is made
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
    if ((await readMeta(target, SERVER_SECRET)) !== null) throw notEmpty();
  });
}
