import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type Config, ConfigError, databaseLocation, sqliteFile } from '../config.ts';
import { locationName } from '../db/availability.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import { lockFile, type Release } from '../db/lock-files.ts';
import { addMeta, MOVED, MOVING, ping, readMeta, tablesOfFile } from '../db/meta-store.ts';
import { migrate, schemaState } from '../db/migrate.ts';
import { createEmptyFile, createFolder, refuseLink } from '../db/own-files.ts';
import { requireSqlite } from '../db/sqlite-client.ts';
import type { DatabaseOptions } from '../db/transaction.ts';
import {
  createMasterKey,
  type MasterKey,
  parseMasterKey,
  SERVER_SECRET,
  serverSecretContext,
  WrongMasterKey,
} from '../keys/master-key.ts';
import { withClosing } from '../lib/collections.ts';
import { driverError, errorCode, succeeds, Unavailable } from '../lib/errors.ts';
import { isLoopback } from '../lib/ip.ts';
import {
  masterKeyPath,
  pendingKeyPath,
  providedKeyPath,
  readMasterKey,
  readMasterKeyFile,
  replaceMasterKeyFile,
  requireRandomKey,
  writeMasterKeyFile,
} from './master-key-files.ts';

/**
 * Creates and opens an installation: data directory, master key and database. Commands and the
 * server call openStore, `gpd init` calls initialiseStore, and a restore calls withExclusiveData.
 */

/**
 * Everyone who opens the SQLite database has a shared lock on this file, and a restore an exclusive
 * one. The file is never deleted: two processes could otherwise lock two files with the same name.
 */
const lockPath = (config: Config): string => join(config.data_dir, 'gpd.lock');

/** @returns null if another process has a lock that excludes this one */
async function lockData(config: Config, mode: 'shared' | 'exclusive'): Promise<Release | null> {
  createEmptyFile(lockPath(config));
  return lockFile(lockPath(config), mode);
}

const NO_ACCESS = /^(SQLITE_(CANTOPEN|READONLY|PERM)|E(ACCES|PERM|ROFS))/;

function explainLockError(config: Config, error: unknown): unknown {
  const code = errorCode(error as Error);
  if (code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT') {
    return new ConfigError(
      `${lockPath(config)} is not empty, and gpd never writes to it: stop the server and every command, then delete that file`,
    );
  }
  if (!NO_ACCESS.test(code)) return error;
  return new ConfigError(
    `cannot use ${lockPath(config)} (${code}), which protects a running server from a restore: run gpd as the user that the server runs as`,
  );
}

const canWrite = (path: string): boolean => succeeds(() => accessSync(path, constants.W_OK));

const releaseNothing: Release = () => Promise.resolve();

/**
 * A process that cannot write the database, as on a read-only
 * disk, needs no lock: it has nothing a restore could lose.
 */
async function lockShared(config: Config): Promise<Release> {
  requireSqlite();
  const release = await lockData(config, 'shared').catch((error: unknown) => {
    const file = sqliteFile(config);
    if (NO_ACCESS.test(errorCode(error as Error)) && existsSync(file) && !canWrite(file))
      return releaseNothing;
    throw explainLockError(config, error);
  });
  if (release === null) throw new Unavailable(`a restore of ${config.data_dir} is running`);
  return release;
}

/**
 * Opens the configured database. On SQLite no restore can replace it until it is closed.
 * @throws {Unavailable}
 */
export async function openData(
  config: Config,
  options: Omit<DatabaseOptions, 'location'> = {},
): Promise<Database> {
  if (config.database_url === null) refuseLink(sqliteFile(config));
  const release = config.database_url === null ? await lockShared(config) : releaseNothing;
  try {
    const database = await openDatabase({ location: databaseLocation(config), ...options });
    const close = async (): Promise<void> => {
      try {
        await database.close();
      } finally {
        await release();
      }
    };
    return { ...database, close };
  } catch (error) {
    await release();
    throw error;
  }
}

/** SQLSTATE insufficient_privilege (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const NOT_PERMITTED = '42501';

/** Migrates with the role of GPD_MIGRATE_DATABASE_URL if set, as the server's role may not change tables. */
export async function migrateData({ migrate_database_url: owner }: Config, database: Database) {
  try {
    return await (owner === null
      ? migrate(database)
      : withClosing(openDatabase({ location: owner }), migrate));
  } catch (error) {
    if (errorCode(driverError(error)) !== NOT_PERMITTED) throw error;
    throw new ConfigError(
      'this role cannot change the schema: set GPD_MIGRATE_DATABASE_URL to a role that owns the tables, or run gpd migrate as that role',
    );
  }
}

/**
 * Runs `work` while no other process can open the data.
 * @throws {Error} the error of `inUse` if another process has it open
 */
export async function withExclusiveData<T>(config: Config, work: () => Promise<T>, inUse: () => Error) {
  const release = await lockData(config, 'exclusive').catch((error: unknown) => {
    throw explainLockError(config, error);
  });
  if (release === null) throw inUse();
  try {
    return await work();
  } finally {
    await release();
  }
}

/** An open database with its master key. Every command and the server begin with it. */
export interface Store {
  readonly database: Database;
  readonly masterKey: MasterKey;
  /**
   * The root of the installation's keys that belong to no tenant, such as those of tokens and rate limits.
   */
  readonly serverSecret: Buffer;
}

const SECRET_BYTES = 32;

export function notInitialised(config: Config): ConfigError {
  const place = config.database_url === null ? config.data_dir : locationName(config.database_url);
  // The page of --setup is for this machine alone.
  const page = isLoopback(config.host) ? '; or `gpd serve --setup`, whose page asks for the rest' : '';
  return new ConfigError(
    `there is no gpd in ${place}: run \`gpd init --tenant KID --origin URL\` first${page}`,
  );
}

/** A directory of another user hides its files, which looks like an empty one. @throws {ConfigError} */
export function databaseFileExists(config: Config): boolean {
  try {
    statSync(sqliteFile(config));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') return false;
    throw new ConfigError(
      `cannot look into ${config.data_dir}: permission denied; run gpd as the user that owns it`,
    );
  }
}

/** SQLite's shared memory needs this much. */
const MIN_FREE_BYTES = 65_536;

/** SQLite reports a read-only or full disk by several codes; the disk itself says which it is. */
export function explainFileError(config: Config, error: unknown): unknown {
  const code = errorCode(driverError(error));
  if (config.database_url !== null || !/^SQLITE_(FULL|IOERR|CANTOPEN|READONLY)/.test(code)) return error;
  const { data_dir } = config;
  try {
    accessSync(data_dir, constants.W_OK);
    const { bavail, bsize } = statfsSync(data_dir);
    if (bavail * bsize >= MIN_FREE_BYTES) return error;
    return new Unavailable(`the disk of ${data_dir} is full: make room (${code})`, 1, { cause: error });
  } catch (denied) {
    if ((denied as NodeJS.ErrnoException).code !== 'EROFS') return error;
    return new ConfigError(`${data_dir} is on a read-only file system: mount it writable (${code})`);
  }
}

/** @returns null before `gpd init` has finished @throws {WrongMasterKey} */
export async function readServerSecret(database: Database, masterKey: MasterKey): Promise<Buffer | null> {
  const wrapped = await readMeta(database, SERVER_SECRET);
  return wrapped === null ? null : masterKey.unwrap(wrapped, serverSecretContext);
}

type Unlocked = Pick<Store, 'masterKey' | 'serverSecret'>;

/** Finishes a `keys rewrap` that died between its two writes: the database already has the new key. */
async function finishRewrap(database: Database, path: string): Promise<Unlocked | null> {
  if (!existsSync(pendingKeyPath(path))) return null;
  const key = parseMasterKey(readFileSync(pendingKeyPath(path)));
  if (!key) return null;
  const masterKey = createMasterKey(key, randomBytes);
  const serverSecret = await readServerSecret(database, masterKey).catch((error: unknown) => {
    if (error instanceof WrongMasterKey) return null;
    throw error;
  });
  if (!serverSecret) return null;
  replaceMasterKeyFile(path);
  return { masterKey, serverSecret };
}

async function unlockDatabase(database: Database, config: Config): Promise<Unlocked | null> {
  const path = masterKeyPath(config);
  const masterKey = createMasterKey(readMasterKey(config), randomBytes);
  try {
    const serverSecret = await readServerSecret(database, masterKey);
    return serverSecret && { masterKey, serverSecret };
  } catch (error) {
    if (!(error instanceof WrongMasterKey)) throw error;
    const finished = await finishRewrap(database, path);
    if (finished) return finished;
    throw new ConfigError(`${path}: ${error.message}`);
  }
}

/**
 * @throws {ConfigError} if the data was moved to another
 *   database, or an interrupted move left this one incomplete
 */
async function refuseMoved(database: Database): Promise<void> {
  const to = await readMeta(database, MOVED);
  if (to !== null)
    throw new ConfigError(
      `the data was moved to ${to}: set GPD_DATABASE_URL to it, or repeat gpd move if it was interrupted`,
    );
  if ((await readMeta(database, MOVING)) !== null)
    throw new ConfigError('a move into this database was interrupted: repeat gpd move');
}

/**
 * Opens an installation and migrates its schema.
 * @throws {ConfigError} if there is no installation yet, or the master key is missing or wrong
 */
export async function openStore(
  config: Config,
  options: Pick<DatabaseOptions, 'onUnknownCommit' | 'onWrite'> = {},
): Promise<Store> {
  if (config.database_url === null && !databaseFileExists(config)) throw notInitialised(config);
  const database = await openData(config, options);
  try {
    const state = await schemaState(database);
    if (state.pending.length > 0 || state.unknown.length > 0) {
      if (!(await database.read.schema.hasTable('meta'))) throw notInitialised(config);
      await migrateData(config, database);
    }
    await refuseMoved(database);
    const unlocked = await unlockDatabase(database, config);
    if (!unlocked) throw notInitialised(config);
    return { database, ...unlocked };
  } catch (error) {
    await database.close();
    throw explainFileError(config, error);
  }
}

export class AlreadyInitialised extends Error {
  constructor(location: string) {
    super(`${location} already exists; nothing was changed. \`gpd tenants add\` adds a tenant to it`);
    this.name = 'AlreadyInitialised';
  }
}

async function initialiseDatabase(config: Config, masterKey: MasterKey): Promise<Store> {
  const database = await openData(config, { create: true });
  try {
    await migrateData(config, database);
    const serverSecret = randomBytes(SECRET_BYTES);
    const wrapped = masterKey.wrap(serverSecret, serverSecretContext);
    // The check is inside the transaction: if two `gpd init` run at once, one fails.
    await database.transaction(async (tx) => {
      if (!(await addMeta(tx, SERVER_SECRET, wrapped))) throw new AlreadyInitialised('the database');
    });
    return { database, masterKey, serverSecret };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** @throws {AlreadyInitialised} */
async function refuseInitialised(database: Database): Promise<void> {
  await ping(database);
  const isOurs = await database.read.schema.hasTable('meta');
  if (isOurs && (await readMeta(database, SERVER_SECRET)) !== null)
    throw new AlreadyInitialised('the database');
}

/** @throws {ConfigError} if the directory cannot be created */
export function createDataDirectory({ data_dir }: Config): void {
  try {
    createFolder(data_dir);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(
      `cannot create the data directory ${data_dir} (${code}): name another one in GPD_DATA_DIR`,
    );
  }
}

/**
 * The header of the first page: a leaf without a cell while there is no table (sqlite.org/fileformat2.html,
 * section 1.6).
 */
const PAGE_OFFSET = 100;
const EMPTY_LEAF = Buffer.from([13, 0, 0, 0, 0]);
/** These bytes of a database file say that it is in WAL mode (sqlite.org/fileformat2.html, section 1.3.3). */
const WAL_OFFSET = 18;
const WAL = Buffer.from([2, 2]);

/**
 * An interrupted `gpd init` leaves a file without tables, or gpd's schema without the server's secret. A
 * database with tables in another mode than WAL belongs to another program, and opening it would change it.
 */
async function isUnfinished(config: Config, file: string): Promise<boolean> {
  if (!statSync(file).isFile())
    throw new ConfigError(`${file} is not a file: name another directory in GPD_DATA_DIR`);
  const firstBytes = Buffer.alloc(PAGE_OFFSET + EMPTY_LEAF.length);
  const descriptor = openSync(file, 'r');
  const length = readSync(descriptor, firstBytes);
  closeSync(descriptor);
  const isWal = firstBytes.subarray(WAL_OFFSET, WAL_OFFSET + WAL.length).equals(WAL);
  // gpd writes the first page before it changes the mode: a file without a table may be from that moment.
  if (length > 0 && !isWal && !firstBytes.subarray(PAGE_OFFSET).equals(EMPTY_LEAF)) return false;
  return withClosing(openData(config), async (database) => {
    const tables = await tablesOfFile(database);
    if (tables.length === 0) return true;
    return tables.includes('meta') && (await readMeta(database, SERVER_SECRET)) === null;
  });
}

/** @throws {ConfigError} if the file cannot be written */
function createMasterKeyFile(path: string): void {
  try {
    writeMasterKeyFile(path, randomBytes(SECRET_BYTES));
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!/^E(?:ACCES|PERM|ROFS|NOENT)$/.test(code)) throw error;
    throw new ConfigError(
      `cannot write to ${dirname(path)} (${code}): name another directory in GPD_DATA_DIR`,
    );
  }
}

/**
 * Creates the data directory, master key and database of a new installation, or finishes an interrupted
 * one. It uses a master key that the operator provides, and creates a key only at DATA_DIR/master.key.
 * @throws {AlreadyInitialised} instead of overwriting anything
 */
export async function initialiseStore(config: Config): Promise<Store> {
  const file = config.database_url === null ? sqliteFile(config) : null;
  if (file !== null && existsSync(file) && !(await isUnfinished(config, file)))
    throw new AlreadyInitialised(file);
  // These checks come first, so that a failure leaves no master key behind.
  if (file !== null) requireSqlite();
  else await withClosing(openData(config), refuseInitialised);
  createDataDirectory(config);
  const path = masterKeyPath(config);
  if (!existsSync(path)) {
    if (providedKeyPath(config) !== null) readMasterKeyFile(path);
    createMasterKeyFile(path);
  }
  const key = readMasterKey(config);
  requireRandomKey(path, key);
  return initialiseDatabase(config, createMasterKey(key, randomBytes));
}
