import { readdir } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Knex } from 'knex';
import type { Database } from './db.ts';

const directory = new URL('../../migrations/', import.meta.url);

/** Serialises migrations of several nodes; an arbitrary constant of ours. */
const ADVISORY_LOCK = 7_208_963_411;

async function migrationNames(): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.endsWith('.js')).sort();
}

const source: Knex.MigrationSource<string> = {
  getMigrations: migrationNames,
  getMigrationName: (name) => name,
  getMigration: (name) =>
    import(pathToFileURL(fileURLToPath(new URL(name, directory))).href) as Promise<Knex.Migration>,
};

export interface SchemaState {
  readonly pending: readonly string[];
  /** Applied by a newer gpd than this one: this one must not touch the data. */
  readonly unknown: readonly string[];
}

/** Cheap enough for every start: one table read and one directory listing. */
export async function schemaState(database: Database): Promise<SchemaState> {
  const names = await migrationNames();
  const exists = await database.read.schema.hasTable('knex_migrations');
  const rows = exists ? await database.read('knex_migrations').select<{ name: string }[]>('name') : [];
  const applied = new Set(rows.map((row) => row.name));
  return {
    pending: names.filter((name) => !applied.has(name)),
    unknown: [...applied].filter((name) => !names.includes(name)),
  };
}

/** The name of the newest migration that the database has; empty for none. */
export async function lastMigration(database: Database): Promise<string> {
  const [row] = await database.read('knex_migrations').max<{ name: string | null }[]>({ name: 'name' });
  return row?.name ?? '';
}

async function latest(connection: Knex): Promise<readonly string[]> {
  const config = { migrationSource: source };
  await connection.migrate.forceFreeMigrationsLock(config);
  const [, applied] = (await connection.migrate.latest(config)) as [number, string[]];
  return applied;
}

/** Whatever serves beside it queues up behind a lock that a change waits for: better to give up and be started again. */
const LOCK_WAIT = '4s';

/** A newer gpd has been here: this one would read and write past it. */
export class SchemaTooNew extends Error {
  constructor(unknown: readonly string[]) {
    super(`the database was written by a newer gpd (${unknown.join(', ')}): upgrade this one`);
    this.name = 'SchemaTooNew';
  }
}

/**
 * Brings the schema up to date and returns what it applied.
 * Knex's own lock row outlives a crash, so ours decides: an advisory lock of the transaction on PostgreSQL, the
 * immediate transaction of a single file on SQLite.
 * @throws {SchemaTooNew}
 * @throws {Unavailable} when a running node holds a table for too long
 */
export async function migrate(database: Database): Promise<readonly string[]> {
  const state = await schemaState(database);
  if (state.unknown.length > 0) throw new SchemaTooNew(state.unknown);
  if (state.pending.length === 0) return [];
  return database.longTransaction(async (tx) => {
    if (database.kind === 'postgres') {
      await tx.raw('SELECT pg_advisory_xact_lock(?)', [ADVISORY_LOCK]);
      await tx.raw(`SET LOCAL lock_timeout = '${LOCK_WAIT}'`);
      // Another node may have migrated in the meantime, and be newer.
      const { unknown } = await schemaState(database);
      if (unknown.length > 0) throw new SchemaTooNew(unknown);
    }
    return latest(tx);
  });
}
