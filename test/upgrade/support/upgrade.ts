import { readdir } from 'node:fs/promises';
import type { Knex } from 'knex';
import type { Database } from '../../../src/db/db.ts';
import type { Row, Source } from './source.ts';

/** A database of an earlier schema, filled as far as that one had places for the rows. */

const directory = new URL('../../../migrations/', import.meta.url);

export async function migrationNames(): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.endsWith('.js')).sort();
}

/** The first of the migrations, as a program that knew no more would have applied them. */
export async function migrateTo(database: Database, names: readonly string[]): Promise<void> {
  await database.transaction((tx) =>
    tx.migrate.latest({
      migrationSource: {
        getMigrations: () => Promise.resolve([...names]),
        getMigrationName: (name: string) => name,
        getMigration: (name: string) => import(new URL(name, directory).href) as Promise<Knex.Migration>,
      },
    }),
  );
}

type Columns = Readonly<Record<string, { readonly type: string }>>;

/** PostgreSQL knows booleans, SQLite wrote 0 and 1. */
function toColumns(row: Row, columns: Columns): Row {
  const kept = Object.entries(row).filter(([name]) => name in columns);
  return Object.fromEntries(
    kept.map(([name, value]) => [
      name,
      columns[name]?.type === 'boolean' && value !== null ? Number(value) === 1 : value,
    ]),
  );
}

/** Verdicts whose erasure an old schema remembers by their request. */
const ERASED = 2;

export interface Filled {
  /** What was inserted, by table. */
  readonly inserted: ReadonlyMap<string, readonly Row[]>;
  readonly erased: number;
}

/** Who refers to others comes after them. */
const FIRST = ['meta', 'revisions', 'tenants', 'contests'];

function rowsFor(source: Source, table: string, has: (table: string) => boolean): readonly Row[] {
  const rows = source.rows.get(table) ?? [];
  // A program without a ledger made no secret for it.
  if (table === 'tenant_secrets' && !has('ledger_heads')) {
    return rows.filter((row) => row['purpose'] !== 'ledger');
  }
  if (table === 'revisions' && !has('agent_directories')) {
    return rows.filter((row) => row['scope'] === 'tenants');
  }
  return rows;
}

async function fillTable(tx: Knex.Transaction, table: string, rows: readonly Row[]): Promise<readonly Row[]> {
  const columns = (await tx(table).columnInfo()) as Columns;
  const fitting = rows.map((row) => toColumns(row, columns));
  await tx(table).delete();
  if (fitting.length > 0) await tx.batchInsert(table, fitting as object[], 20);
  return fitting;
}

/** Schemas 12 and 13 keep the request of an erased verdict. */
async function eraseAsThen(tx: Knex.Transaction, source: Source): Promise<number> {
  const columns = await tx('erased_verdicts').columnInfo();
  if (!('request_id' in columns)) return 0;
  const all = await tx('decisions')
    .where({ decided_at: source.sealedHour + 1000 })
    .orderBy('request_id');
  // The first and one in the middle, so that a place is not the only one possible.
  const gone = [all[0], all[2]].slice(0, ERASED) as Row[];
  for (const { kid, request_id, decided_at, commitment } of gone) {
    await tx('erased_verdicts').insert({ kid, request_id, decided_at, commitment });
    await tx('decisions').where({ kid, request_id }).delete();
  }
  return gone.length;
}

export async function fill(database: Database, source: Source): Promise<Filled> {
  const inserted = new Map<string, readonly Row[]>();
  const present = new Set<string>();
  for (const table of source.rows.keys()) {
    if (await database.read.schema.hasTable(table)) present.add(table);
  }
  const has = (table: string): boolean => present.has(table);
  const order = [...FIRST.filter(has), ...[...present].filter((table) => !FIRST.includes(table))];
  let erased = 0;
  await database.transaction(async (tx) => {
    for (const table of [...order].reverse()) await tx(table).delete();
    for (const table of order) {
      const isOld = table === 'erased_verdicts' && 'request_id' in (await tx(table).columnInfo());
      const rows = isOld ? [] : rowsFor(source, table, has);
      inserted.set(table, await fillTable(tx, table, rows));
    }
    if (has('erased_verdicts')) erased = await eraseAsThen(tx, source);
    if (database.kind === 'postgres' && has('audit_log')) {
      await tx.raw(
        "SELECT setval(pg_get_serial_sequence('audit_log', 'seq'), (SELECT coalesce(max(seq), 1) FROM audit_log))",
      );
    }
  });
  return { inserted, erased };
}

/** The shape of every table and the names of the indexes. */
export async function shapeOf(database: Database): Promise<Record<string, unknown>> {
  const { kind, read } = database;
  const tables: string[] =
    kind === 'sqlite'
      ? await read('sqlite_master')
          .where({ type: 'table' })
          .whereNot('name', 'like', 'sqlite_%')
          .pluck('name')
      : await read('information_schema.tables').where({ table_schema: 'public' }).pluck('table_name');
  const indexes: string[] =
    kind === 'sqlite'
      ? await read('sqlite_master').where({ type: 'index' }).pluck('name')
      : await read('pg_indexes').where({ schemaname: 'public' }).pluck('indexname');
  const columns: Record<string, unknown> = {};
  for (const table of tables) columns[table] = await read(table).columnInfo();
  return { columns, indexes: [...indexes].sort() };
}
