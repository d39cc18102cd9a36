import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Config, ConfigError, sqliteFile } from '../config.ts';
import { type DatabaseOptions, locationName } from '../db/availability.ts';
import type { Database } from '../db/db.ts';
import { makeFolder } from '../db/files.ts';
import { addMeta, MOVED, MOVING, ping, readMeta, tablesOfFile } from '../db/meta-store.ts';
import { schemaState } from '../db/migrate.ts';
import { requireSqlite } from '../db/sqlite-client.ts';
import {
  type MasterKey,
  makeMasterKey,
  parseMasterKey,
  SERVER_SECRET,
  serverSecretContext,
  WrongMasterKey,
} from '../keys/master-key.ts';
import { withClosing } from '../lib/functions.ts';
import { migrateData, openData } from './data-lock-files.ts';
import {
  masterKeyPath,
  pendingKeyPath,
  providedKeyPath,
  readMasterKey,
  readMasterKeyFile,
  replaceMasterKeyFile,
  writeMasterKeyFile,
} from './master-key-files.ts';

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
  const masterKey = makeMasterKey(key, randomBytes);
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
  const masterKey = makeMasterKey(readMasterKey(config), randomBytes);
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

/** @throws {ConfigError} where there can be none */
export function makeDataDirectory({ data_dir }: Config): void {
  try {
    makeFolder(data_dir);
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
function makeMasterKeyFile(path: string): void {
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
  if (file !== null) requireSqlite();
  // Before anything is made for it.
  else await withClosing(openData(config), ping);
  makeDataDirectory(config);
  const path = masterKeyPath(config);
  if (!existsSync(path)) {
    if (providedKeyPath(config) !== null) readMasterKeyFile(path);
    makeMasterKeyFile(path);
  }
  return initialiseDatabase(config, makeMasterKey(readMasterKey(config), randomBytes));
}
