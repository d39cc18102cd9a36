import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { bump, REMOVING } from '../db/meta-store.ts';
import { purge } from '../db/purge.ts';
import { countOf, pagesOf, rowsOf } from '../db/sql.ts';
import { ofStoredDays } from '../ingest/devices-store.ts';
import { tryLockHead } from '../log/entries.ts';
import type { TableName } from './person-map.ts';
import { rowOf, TENANT_DATA_TABLES } from './person-map.ts';

/** All rows of a tenant, whether there is such a tenant or not. */

function within(rows: Knex.QueryBuilder, table: TableName, kid: string): Knex.QueryBuilder {
  const own = rows.where({ kid });
  return rowOf(table).key[0] === 'day' ? ofStoredDays(own, table) : own;
}

/** Rows that a removed tenant left; none of a tenant that exists, or was made again meanwhile. @returns how many went, by table */
export async function emptyTables(database: Database, kid: string, onProgress?: (table: string) => void) {
  const isGone = 'NOT EXISTS (SELECT 1 FROM tenants WHERE tenants.kid = ?)';
  const counts: Record<string, number> = {};
  for (const table of TENANT_DATA_TABLES) {
    onProgress?.(table);
    counts[table] = await purge(database, table, rowOf(table).key, (rows) =>
      within(rows, table, kid).whereRaw(isGone, [kid]),
    );
  }
  return counts;
}

/** A table that holds a row of this kid; null: none does. */
export async function tableWithRows(tx: Knex.Transaction, kid: string): Promise<string | null> {
  for (const table of TENANT_DATA_TABLES) {
    const [row] = (await within(tx(table), table, kid).limit(1).select('kid')) as unknown[];
    if (row !== undefined) return table;
  }
  return null;
}

/** Kids of rows in a table whose tenant does not exist, with one seek per tenant. The whole installation has the empty kid. */
async function foreignKidsIn(read: Knex, table: TableName): Promise<string[]> {
  const sql = `WITH RECURSIVE k(kid) AS (SELECT min(kid) FROM ${table}
    UNION ALL SELECT (SELECT min(kid) FROM ${table} WHERE kid > k.kid) FROM k WHERE k.kid IS NOT NULL)
    SELECT kid FROM k WHERE kid <> '' AND NOT EXISTS (SELECT 1 FROM tenants WHERE tenants.kid = k.kid)`;
  return rowsOf<{ kid: string }>(await read.raw(sql)).map(({ kid }) => kid);
}

/** Kids of rows without a tenant. Where no index leads from a tenant to its rows, they expire within days. */
async function orphanKids({ read }: Database): Promise<readonly string[]> {
  const kids = new Set<string>();
  for (const table of TENANT_DATA_TABLES)
    if (rowOf(table).tenant === 'emptied') for (const kid of await foreignKidsIn(read, table)) kids.add(kid);
  return [...kids].sort();
}

/** Removes rows without a tenant: what a removal left that was interrupted. */
export async function sweepOrphans(database: Database): Promise<number> {
  let total = 0;
  for (const kid of await orphanKids(database))
    for (const count of Object.values(await emptyTables(database, kid))) total += count;
  return total;
}

/** Rows without a tenant, by the kid that they name. */
export async function countOrphanRows(database: Database) {
  const { read } = database;
  const found = [];
  for (const kid of await orphanKids(database)) {
    let rows = 0;
    for (const table of TENANT_DATA_TABLES) rows += await countOf(within(read(table), table, kid));
    found.push({ kid, rows });
  }
  return found;
}

const PAGE = 2000;

/** Rows of a tenant as they are stored, for the export of an offboarding. */
export async function* tenantRows(database: Database, kid: string, table: TableName) {
  const { key } = rowOf(table);
  const query = database.read(table).where({ kid });
  for await (const rows of pagesOf<Readonly<Record<string, unknown>>>(query, key, PAGE)) yield* rows;
}

/** Offboarding: the tenant's row first, with the tables that hang on it, then all of its rows in steps. */

/**
 * The tenant's row is deleted first, with its keys: running servers no longer answer for it, and none writes a row of it, while the
 * rest follows. If interrupted, it continues when it is asked for again. Returns the rows by table, and whether there was anything at all.
 */
export async function removeTenant(
  database: Database,
  kid: string,
  told: {
    /** The tenant answers nobody any more, and nothing of it is deleted yet. */
    readonly onGoing?: () => Promise<void>;
    readonly onProgress?: (table: string) => void;
  } = {},
): Promise<Readonly<Record<string, number>> | null> {
  // Alone, or on PostgreSQL the next transaction waits for as long as batches that hold the row follow on each other.
  const going = await database.transaction((tx) =>
    tx('tenants').where({ kid }).update({ revision: REMOVING }),
  );
  if (going > 0) await told.onGoing?.();
  const existed = await database.transaction(async (tx) => {
    await bump(tx, 'tenants');
    // Before the row of the tenant: writers of the log lock them in this order.
    await tryLockHead(tx, kid);
    return (await tx('tenants').where({ kid }).delete()) === 1;
  });
  const counts = await emptyTables(database, kid, told.onProgress);
  return existed || Object.values(counts).some((count) => count > 0) ? counts : null;
}
