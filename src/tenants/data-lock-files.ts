import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, ConfigError, databaseLocation, sqliteFile } from '../config.ts';
import { type DatabaseOptions, driverError, errorCode } from '../db/availability.ts';
import { type Database, openDatabase } from '../db/db.ts';
import { lockFile, makeEmpty, type Release, refuseLink } from '../db/files.ts';
import { migrate } from '../db/migrate.ts';
import { requireSqlite } from '../db/sqlite-client.ts';
import { Unavailable } from '../lib/errors.ts';
import { succeeds, withClosing } from '../lib/functions.ts';

/**
 * Who uses the SQLite database of a data directory, whatever state its file is in: everyone who opens it shares a lock, and a
 * restore has it alone. The file of the lock stays for ever: two files of one name would be two locks.
 */

const lockPath = (config: Config): string => join(config.data_dir, 'gpd.lock');

/** Null: others hold it. */
async function take(config: Config, how: 'shared' | 'exclusive'): Promise<Release | null> {
  makeEmpty(lockPath(config));
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
    return await openDatabase({ location: databaseLocation(config), afterClose: release, ...options });
  } catch (error) {
    await release();
    throw error;
  }
}

/** PostgreSQL: insufficient_privilege. */
const NOT_PERMITTED = '42501';

/** By the owner of the tables, where the server's own role may not change them. @throws as migrate */
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
