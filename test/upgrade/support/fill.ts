import type { Knex } from 'knex';
import type { Database } from '../../../src/db/db.ts';
import { MIGRATIONS, type Row, type Rung } from './rung.ts';

/** A database as a release left it. */

/** What it had migrated, as that program would have done it. */
async function migrateTo(database: Database, names: readonly string[]): Promise<void> {
  await database.transaction((tx) =>
    tx.migrate.latest({
      migrationSource: {
        getMigrations: () => Promise.resolve([...names]),
        getMigrationName: (name: string) => name,
        getMigration: async (name: string) => ({
          ...((await import(new URL(name, MIGRATIONS).href)) as Knex.Migration),
          down: () => Promise.resolve(),
        }),
      },
    }),
  );
}

/** PostgreSQL knows booleans, SQLite wrote 0 and 1. */
function toColumns(row: Row, booleans: ReadonlySet<string>): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      booleans.has(name) && value !== null ? Number(value) === 1 : value,
    ]),
  );
}

async function fillTable(tx: Knex.Transaction, table: string, rows: readonly Row[]): Promise<void> {
  const columns = (await tx(table).columnInfo()) as Readonly<Record<string, { readonly type: string }>>;
  const booleans = new Set(Object.keys(columns).filter((name) => columns[name]?.type === 'boolean'));
  await tx.batchInsert(table, rows.map((row) => toColumns(row, booleans)) as object[], 20);
}

/** Who refers to others comes after them. */
const FIRST = ['tenants', 'contests'];
const COUNTED = ['audit_log', 'webhook_outbox'];

export async function fill(database: Database, rung: Rung): Promise<void> {
  await migrateTo(database, Object.keys(rung.migrations).sort());
  const tables = [...rung.rows.keys()];
  const order = [...FIRST, ...tables.filter((table) => !FIRST.includes(table))];
  await database.transaction(async (tx) => {
    await tx('revisions').delete();
    for (const table of order) await fillTable(tx, table, rung.rows.get(table) ?? []);
    if (database.kind === 'sqlite') return;
    for (const table of COUNTED) {
      const last = `(SELECT coalesce(max(seq), 1) FROM ${table})`;
      await tx.raw(`SELECT setval(pg_get_serial_sequence('${table}', 'seq'), ${last})`);
    }
  });
}
