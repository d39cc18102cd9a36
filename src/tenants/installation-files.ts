import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type Config, ConfigError, databaseLocation, sqliteFile } from '../config.ts';
import { type DatabaseOptions, driverError, errorCode, locationName } from '../db/availability.ts';
import { type Database, openDatabase } from '../db/engine.ts';
import { createEmptyFile, createFolder, lockFile, type Release, refuseLink } from '../db/files.ts';
import { addMeta, MOVED, MOVING, ping, readMeta, tablesOfFile } from '../db/meta-store.ts';
import { migrate, schemaState } from '../db/migrate.ts';
import { requireSqlite } from '../db/sqlite-client.ts';
import {
  createMasterKey,
  type MasterKey,
  parseMasterKey,
  SERVER_SECRET,
  serverSecretContext,
  WrongMasterKey,
} from '../keys/master-key.ts';
import { withClosing } from '../lib/collections.ts';
import { succeeds, Unavailable } from '../lib/errors.ts';
import {
  masterKeyPath,
  pendingKeyPath,
  providedKeyPath,
  readMasterKey,
  readMasterKeyFile,
  replaceMasterKeyFile,
  writeMasterKeyFile,
} from './master-key-files.ts';

/**
 * Who uses the SQLite database of a data directory, whatever state its file is in: everyone who opens it shares a lock, and a
 * restore has it alone. The file of the lock stays for ever: two files of one name would be two locks.
 */

const lockPath = (config: Config): string => join(config.data_dir, 'gpd.lock');

/** Null: others hold it. */
async function take(config: Config, how: 'shared' | 'exclusive'): Promise<Release | null> {
  createEmptyFile(lockPath(config));
  return lockFile(lockPath(config), how);
}

const NOT_OURS = /^(SQLITE_(CANTOPEN|READONLY|PERM)|E(ACCES|PERM|ROFS))/;

function lockFault(config: Config, error: unknown): unknown {
  const code = errorCode(error as Error);
  if (code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT') {
    return new ConfigError(
      `${lockPath(config)} is not empty, and gpd never writes to it: stop the server and every command, then delete that file`,
    );
  }
  if (!NOT_OURS.test(code)) return error;
  return new ConfigError(
    `cannot use ${lockPath(config)} (${code}), which protects a running server from a restore: run gpd as the user that the server runs as`,
  );
}

const mayWrite = (path: string): boolean => succeeds(() => accessSync(path, constants.W_OK));

const nothing: Release = () => Promise.resolve();

/** A process that cannot write the database, as on a read-only disk, has nothing that a restore could lose. */
async function share(config: Config): Promise<Release> {
  requireSqlite();
  const release = await take(config, 'shared').catch((error: unknown) => {
    const file = sqliteFile(config);
    if (NOT_OURS.test(errorCode(error as Error)) && existsSync(file) && !mayWrite(file)) return nothing;
    throw lockFault(config, error);
  });
  if (release === null) throw new Unavailable(`a restore of ${config.data_dir} is running`);
  return release;
}

/** The database of the configuration; on SQLite no restore takes its place until it is closed. @throws {Unavailable} */
export async function openData(
  config: Config,
  options: Omit<DatabaseOptions, 'location'> = {},
): Promise<Database> {
  if (config.database_url === null) refuseLink(sqliteFile(config));
  const release = config.database_url === null ? await share(config) : nothing;
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

/** PostgreSQL: insufficient_privilege. */
const NOT_PERMITTED = '42501';

/** Migrates as the owner of the tables, where the server's own role may not change them. @throws as migrate */
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

/** Does the work while nobody has the data open, and nobody can open them. @throws what `inUse` says when somebody has */
export async function withDataAlone<T>(config: Config, work: () => Promise<T>, inUse: () => Error) {
  const release = await take(config, 'exclusive').catch((error: unknown) => {
    throw lockFault(config, error);
  });
  if (release === null) throw inUse();
  try {
    return await work();
  } finally {
    await release();
  }
}

/** The database with the master key that opens it; what every command and the server begin with. */
export interface Store {
  readonly database: Database;
  readonly masterKey: MasterKey;
  /** Root of the keys that belong to the installation and to no tenant: tokens, rate salts. */
  readonly serverSecret: Buffer;
}

const SECRET_BYTES = 32;

export function notInitialised(config: Config): ConfigError {
  return new ConfigError(
    `there is no gpd in ${config.database_url === null ? config.data_dir : locationName(config.database_url)}: run \`gpd init --tenant KID --origin URL\` first`,
  );
}

/** @throws {ConfigError} when what is stored does not open with this key */
export async function readServerSecret(database: Database, masterKey: MasterKey): Promise<Buffer | null> {
  const wrapped = await readMeta(database, SERVER_SECRET);
  return wrapped === null ? null : masterKey.unwrap(wrapped, serverSecretContext);
}

type Unlocked = Pick<Store, 'masterKey' | 'serverSecret'>;

/** `keys rewrap` died between its two writes: the database already speaks the new key. */
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

async function unlock(database: Database, config: Config): Promise<Unlocked | null> {
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

/** @throws {ConfigError} of a database that was moved elsewhere, or that a move has not filled yet */
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
 * Opens what `gpd init` made, and brings its schema up to date.
 * @throws {ConfigError} when there is nothing yet, or the master key is missing or wrong
 */
export async function openStore(
  config: Config,
  options: Pick<DatabaseOptions, 'onUnknownCommit'> = {},
): Promise<Store> {
  if (config.database_url === null && !existsSync(sqliteFile(config))) throw notInitialised(config);
  const database = await openData(config, options);
  try {
    const state = await schemaState(database);
    if (state.pending.length > 0 || state.unknown.length > 0) {
      if (!(await database.read.schema.hasTable('meta'))) throw notInitialised(config);
      await migrateData(config, database);
    }
    await refuseMoved(database);
    const unlocked = await unlock(database, config);
    if (!unlocked) throw notInitialised(config);
    return { database, ...unlocked };
  } catch (error) {
    await database.close();
    throw error;
  }
}

export class AlreadyInitialised extends Error {
  constructor(where: string) {
    super(`${where} already exists; nothing was changed. \`gpd tenants add\` adds a tenant to it`);
    this.name = 'AlreadyInitialised';
  }
}

async function initialiseDatabase(config: Config, masterKey: MasterKey): Promise<Store> {
  const database = await openData(config, { create: true });
  try {
    await migrateData(config, database);
    const serverSecret = randomBytes(SECRET_BYTES);
    const wrapped = masterKey.wrap(serverSecret, serverSecretContext);
    // Checked where nobody else writes: of two that start at once, one fails.
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

/** @throws {ConfigError} where there can be none */
export function createDataDirectory({ data_dir }: Config): void {
  try {
    createFolder(data_dir);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code;
    throw new ConfigError(
      `cannot create the data directory ${data_dir} (${why}): name another one in GPD_DATA_DIR`,
    );
  }
}

/** Of the 100 bytes at the head of a database those that say WAL (sqlite.org/fileformat2.html, section 1.3.3). */
const WAL_AT = 18;
const WAL = Buffer.from([2, 2]);

/**
 * What a `gpd init` that was interrupted leaves: a file without a byte, or our schema without the secret that everything
 * else is wrapped with. A database in another mode is another program's, and to open it would change it.
 */
async function isUnfinished(config: Config, file: string): Promise<boolean> {
  if (!statSync(file).isFile())
    throw new ConfigError(`${file} is not a file: name another directory in GPD_DATA_DIR`);
  const head = Buffer.alloc(WAL_AT + WAL.length);
  const descriptor = openSync(file, 'r');
  const length = readSync(descriptor, head);
  closeSync(descriptor);
  if (length > 0 && !head.subarray(WAL_AT).equals(WAL)) return false;
  return withClosing(openData(config), async (database) => {
    const tables = await tablesOfFile(database);
    if (tables.length === 0) return true;
    return tables.includes('meta') && (await readMeta(database, SERVER_SECRET)) === null;
  });
}

/** @throws {ConfigError} where nothing can be written */
function createMasterKeyFile(path: string): void {
  try {
    writeMasterKeyFile(path, randomBytes(SECRET_BYTES));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? '';
    if (!/^E(?:ACCES|PERM|ROFS|NOENT)$/.test(why)) throw error;
    throw new ConfigError(
      `cannot write to ${dirname(path)} (${why}): name another directory in GPD_DATA_DIR`,
    );
  }
}

/**
 * Data directory, master key and database of a new installation; what an interrupted one left is finished. A master key
 * that was put in place before (a systemd credential, GPD_MASTER_KEY_FILE) is taken; only DATA_DIR/master.key is ever made.
 * @throws {AlreadyInitialised} rather than overwrite anything
 */
export async function initialiseStore(config: Config): Promise<Store> {
  const file = config.database_url === null ? sqliteFile(config) : null;
  if (file !== null && existsSync(file) && !(await isUnfinished(config, file)))
    throw new AlreadyInitialised(file);
  // Before a key is made for it.
  if (file !== null) requireSqlite();
  else await withClosing(openData(config), refuseInitialised);
  createDataDirectory(config);
  const path = masterKeyPath(config);
  if (!existsSync(path)) {
    if (providedKeyPath(config) !== null) readMasterKeyFile(path);
    createMasterKeyFile(path);
  }
  return initialiseDatabase(config, createMasterKey(readMasterKey(config), randomBytes));
}
