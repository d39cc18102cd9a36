import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { bump, REMOVING } from '../db/meta-store.ts';
import { type OnStep, purge } from '../db/purge.ts';
import { countOf, pagesOf, requireNone, rowsOf } from '../db/sql.ts';
import { ofStoredDays } from '../ingest/devices-store.ts';
import { tryLockHead } from '../log/entries-store.ts';
import type { TableName } from './person-map.ts';
import { rowOf, TENANT_DATA_TABLES, tablesWhere } from './person-map.ts';

/** Reads, counts and removes the rows of a tenant, even of one whose row in `tenants` is missing. */

function rowsWithin(rows: Knex.QueryBuilder, table: TableName, kid: string): Knex.QueryBuilder {
  const ownRows = rows.where({ kid });
  return rowOf(table).key[0] === 'day' ? ofStoredDays(ownRows, table) : ownRows;
}

/**
 * Deletes rows that a removed tenant left, and none of a tenant that exists or was created again meanwhile.
 * @returns counts by table
 */
export async function emptyTables(database: Database, kid: string, onStep?: OnStep) {
  const tenantIsMissing = 'NOT EXISTS (SELECT 1 FROM tenants WHERE tenants.kid = ?)';
  const counts: Record<string, number> = {};
  for (const table of TENANT_DATA_TABLES) {
    const leftRows = (rows: Knex.QueryBuilder): Knex.QueryBuilder =>
      rowsWithin(rows, table, kid).whereRaw(tenantIsMissing, [kid]);
    counts[table] = await purge(database, table, rowOf(table).key, leftRows, undefined, onStep);
  }
  return counts;
}

async function countTenantRows({ read }: Database, kid: string): Promise<number> {
  let total = 0;
  for (const table of TENANT_DATA_TABLES) total += await countOf(rowsWithin(read(table), table, kid));
  return total;
}

/** Counts rows that an erasure would keep and the removal of the tenant deletes. */
export async function countProtected({ read }: Database, kid: string) {
  const openContests = await countOf(read('contests').where({ kid, status: 'open' }));
  return { openContests, heldDevices: await countOf(read('legal_holds').where({ kid })) };
}

/** @returns a table that has a row of this kid; null: none has */
export async function tableWithRows(tx: Knex.Transaction, kid: string): Promise<string | null> {
  for (const table of TENANT_DATA_TABLES) {
    const [row] = (await rowsWithin(tx(table), table, kid).limit(1).select('kid')) as unknown[];
    if (row !== undefined) return table;
  }
  return null;
}

/**
 * Reads the kids in a table whose tenant does not exist, with one seek per kid. Rows of the whole
 * installation have the empty kid.
 */
async function foreignKidsIn(read: Knex, table: TableName): Promise<string[]> {
  const sql = `WITH RECURSIVE k(kid) AS (SELECT min(kid) FROM ${table}
    UNION ALL SELECT (SELECT min(kid) FROM ${table} WHERE kid > k.kid) FROM k WHERE k.kid IS NOT NULL)
    SELECT kid FROM k WHERE kid <> '' AND NOT EXISTS (SELECT 1 FROM tenants WHERE tenants.kid = k.kid)`;
  return rowsOf<{ kid: string }>(await read.raw(sql)).map(({ kid }) => kid);
}

/**
 * Reads the kids of rows without a tenant. Rows that no index finds by tenant expire within days, and are not
 * read.
 */
async function orphanKids({ read }: Database): Promise<readonly string[]> {
  const kids = new Set<string>();
  for (const table of TENANT_DATA_TABLES)
    if (rowOf(table).tenant === 'emptied') for (const kid of await foreignKidsIn(read, table)) kids.add(kid);
  return [...kids].sort();
}

/** Removes rows without a tenant, which an interrupted removal left. */
export async function sweepOrphans(database: Database): Promise<number> {
  let total = 0;
  for (const kid of await orphanKids(database))
    for (const count of Object.values(await emptyTables(database, kid))) total += count;
  return total;
}

/** Counts rows without a tenant by their kid. */
export async function countOrphanRows(database: Database) {
  const { read } = database;
  const orphanRows = [];
  for (const kid of await orphanKids(database)) {
    let rows = 0;
    for (const table of TENANT_DATA_TABLES) rows += await countOf(rowsWithin(read(table), table, kid));
    orphanRows.push({ kid, rows });
  }
  return orphanRows;
}

/** @throws {WriteUndone} when rows of a removed tenant are left, unless it was created again meanwhile */
async function requireRemoved(database: Database, kid: string): Promise<void> {
  await database.transaction(async (tx) => {
    for (const table of tablesWhere(({ tenant }) => tenant !== 'stays')) {
      const rows = rowsWithin(tx(table), table, kid).whereNotExists(tx('tenants').where({ kid }));
      await requireNone(tx, rows, `tenant ${kid} is not removed, as ${table} has rows of it`);
    }
  });
}

const PAGE = 2000;

/** Yields rows of a tenant as they are stored, for the export of an offboarding. */
export async function* tenantRows(database: Database, kid: string, table: TableName) {
  const { key } = rowOf(table);
  const query = database.read(table).where({ kid });
  for await (const rows of pagesOf<Readonly<Record<string, unknown>>>(query, key, PAGE)) yield* rows;
}

/**
 * Deletes the tenant's row first, with its keys: running servers no longer answer for it, and none writes a
 * row of it. All other rows follow in steps. After an interruption the next call continues.
 * @returns the number of rows by table; null when the tenant had none
 */
export async function removeTenant(
  database: Database,
  kid: string,
  callbacks: {
    /** Called when the tenant no longer answers and nothing of it is deleted yet. */
    readonly onStopped?: () => Promise<void>;
    /** Gets how many rows are deleted, of how many. */
    readonly onProgress?: (done: number, total: number) => void;
  } = {},
): Promise<Readonly<Record<string, number>> | null> {
  // A transaction without other statements: on PostgreSQL a longer one waits while batches lock the row one
  // after the other.
  const stoppedCount = await database.transaction((tx) =>
    tx('tenants').where({ kid }).update({ revision: REMOVING }),
  );
  if (stoppedCount > 0) await callbacks.onStopped?.();
  const existed = await database.transaction(async (tx) => {
    await bump(tx, 'tenants');
    // Writers of the log lock its head before the row of the tenant; another order would deadlock.
    await tryLockHead(tx, kid);
    const tenant = tx('tenants').where({ kid });
    const deletedCount = (await tenant.clone().delete()) as unknown as number;
    await requireNone(tx, tenant, `tenant ${kid} is not removed`);
    return deletedCount === 1;
  });
  const { onProgress } = callbacks;
  const total = onProgress ? await countTenantRows(database, kid) : 0;
  let done = 0;
  const counts = await emptyTables(database, kid, (deleted) => {
    done += deleted;
    onProgress?.(done, Math.max(total, done));
  });
  await requireRemoved(database, kid);
  return existed || Object.values(counts).some((count) => count > 0) ? counts : null;
}
