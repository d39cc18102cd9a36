import { readdir } from 'node:fs/promises';
import type { Knex } from 'knex';
import type { Database } from './engine.ts';
import { rowsOf } from './sql.ts';

/**
 * Creates and changes the schema: under a lock, all pending migrations or none, and never one that this
 * program does not know.
 */

const directory = new URL('../../migrations/', import.meta.url);

/**
 * Every database begins with this migration. One with older migrations comes from a version that was never
 * released.
 */
const BASELINE = '20261130_00_baseline.js';

/** Serialises the migrations of several nodes. The number is arbitrary. */
const ADVISORY_LOCK = 7_208_963_411;

async function migrationNames(): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.endsWith('.js')).sort();
}

const source: Knex.MigrationSource<string> = {
  getMigrations: migrationNames,
  getMigrationName: (name) => name,
  // Knex demands a way down, which is never taken: the way back is a backup.
  getMigration: async (name) => {
    const { up } = (await import(new URL(name, directory).href)) as Pick<Knex.Migration, 'up'>;
    return { up, down: () => Promise.reject(new Error(`${name} has no way down`)) };
  },
};

/** Cheap enough for every start: one table read and one directory listing. */
export async function schemaState(database: Database) {
  const names = await migrationNames();
  const exists = await database.read.schema.hasTable('knex_migrations');
  const rows = exists ? await database.read('knex_migrations').select<{ name: string }[]>('name') : [];
  const applied = new Set(rows.map((row) => row.name));
  return {
    pending: names.filter((name) => !applied.has(name)),
    /** Applied by another gpd, newer or never released: this one must not touch the data. */
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

/**
 * All other statements queue behind a lock that a migration waits for, so it gives up and is started again.
 */
const LOCK_WAIT = '4s';

export const isUnreleased = (unknown: readonly string[]): boolean => unknown.some((name) => name < BASELINE);

/** The reason why this gpd refuses a database with these migrations, and the remedy. */
export function refusalOf(unknown: readonly string[]): string {
  return isUnreleased(unknown)
    ? 'was made before gpd 0.1.0, the first release: make a new installation with gpd init'
    : `was written by a newer gpd (${unknown.join(', ')}): upgrade this one`;
}

/** Another gpd has changed the schema: this one would misread it. */
export class UnknownSchema extends Error {
  constructor(unknown: readonly string[]) {
    super(`the database ${refusalOf(unknown)}`);
    this.name = 'UnknownSchema';
  }
}

/** The migrations that this gpd would apply. @throws {UnknownSchema} */
export async function pendingMigrations(database: Database): Promise<readonly string[]> {
  const { pending, unknown } = await schemaState(database);
  if (unknown.length > 0) throw new UnknownSchema(unknown);
  return pending;
}

/**
 * Brings the schema up to date and returns the applied migrations. Knex's lock row outlives a crash, so gpd
 * takes its own lock: an advisory lock of the transaction on PostgreSQL, the immediate transaction on SQLite.
 * @throws {UnknownSchema}
 * @throws {Unavailable} when a running node locks a table for too long
 */
export async function migrate(database: Database): Promise<readonly string[]> {
  if ((await pendingMigrations(database)).length === 0) return [];
  return database.migration(async (tx) => {
    if (database.kind === 'postgres') {
      await tx.raw('SELECT pg_advisory_xact_lock(?)', [ADVISORY_LOCK]);
      await tx.raw(`SET LOCAL lock_timeout = '${LOCK_WAIT}'`);
      // Another node may have migrated in the meantime, and be newer.
      await pendingMigrations(database);
    }
    const applied = await latest(tx);
    if (database.kind === 'postgres') await setUpTables(tx);
    return applied;
  });
}

/** A table with one of these columns has rows about persons (src/rights/person-map.ts). */
const PERSONAL = ['durable', 'request_id', 'visitor_id', 'principal', 'subject'];

/** Columns with few distinct values, which identify nobody. */
const FEW_VALUES = [
  'kid',
  'class',
  'status',
  'outcome',
  'resolved_role',
  'proposed_outcome',
  'webhook',
  'event',
  'state',
  'purpose',
  'choice',
  'scope',
  'requested_by',
  'step',
];

const OUR_TABLES = `t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r' AND t.relname NOT LIKE 'knex%'`;

/**
 * PostgreSQL samples column values for its planner and shows them in pg_stats long after their row is erased.
 * So tables about persons are not sampled, except for columns of few values.
 */
async function disableSampling(tx: Knex.Transaction): Promise<void> {
  const sql = `SELECT t.relname AS name, a.attname AS col FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid
    WHERE ${OUR_TABLES} AND a.atttypid IN ('text'::regtype, 'bytea'::regtype) AND NOT a.attisdropped
      AND a.attname <> ALL(?) AND a.attstattarget IS DISTINCT FROM 0
      AND EXISTS (SELECT 1 FROM pg_attribute p WHERE p.attrelid = t.oid AND p.attname = ANY(?) AND NOT p.attisdropped)`;
  const columns = rowsOf<{ name: string; col: string }>(await tx.raw(sql, [FEW_VALUES, PERSONAL]));
  for (const { name, col } of columns)
    await tx.raw('ALTER TABLE ?? ALTER COLUMN ?? SET STATISTICS 0', [name, col]);
}

/**
 * Retention deletes about one row in ninety a day, and short-lived rows die within minutes. By default
 * autovacuum waits until a fifth of a table is dead, and that room is not reused meanwhile, in indexes
 * neither (ADR 0028).
 */
async function lowerVacuumThreshold(tx: Knex.Transaction): Promise<void> {
  const sql = `SELECT t.relname AS name FROM pg_class t WHERE ${OUR_TABLES}
    AND NOT EXISTS (SELECT 1 FROM unnest(t.reloptions) o WHERE o LIKE 'autovacuum_vacuum_scale_factor=%')`;
  for (const { name } of rowsOf<{ name: string }>(await tx.raw(sql)))
    await tx.raw('ALTER TABLE ?? SET (autovacuum_vacuum_scale_factor = 0.02)', [name]);
}

/**
 * Runs in the transaction of each migration, so that nothing is sampled in between. Tables that already have
 * these settings are not locked.
 */
export async function setUpTables(tx: Knex.Transaction): Promise<void> {
  await disableSampling(tx);
  await lowerVacuumThreshold(tx);
}
