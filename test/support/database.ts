import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Knex } from 'knex';
import sqlite3 from 'sqlite3';
import { loadConfig } from '../../src/config.ts';
import { stateMacs } from '../../src/consent/state-mac-store.ts';
import { toPrincipalRow, toStateRow } from '../../src/consent/state-store.ts';
import { macTerms } from '../../src/consent/terms-store.ts';
import type { Ask } from '../../src/db/builder.ts';
import { bumpTenant } from '../../src/db/meta-store.ts';
import { chunksOf } from '../../src/lib/collections.ts';
import { openStore } from '../../src/tenants/installation-files.ts';

/** Reads and changes the SQLite file of a running gpd from outside, like an operator with sqlite3. */

type Row = Readonly<Record<string, unknown>>;

function openFile(dataDir: string, mode: number): Promise<sqlite3.Database> {
  return new Promise((resolve, reject) => {
    const database = new sqlite3.Database(join(dataDir, 'gpd.db'), mode, (error) =>
      error ? reject(error) : resolve(database),
    );
  });
}

async function withFile<T>(
  dataDir: string,
  mode: number,
  work: (all: (sql: string) => Promise<Row[]>) => Promise<T>,
): Promise<T> {
  const database = await openFile(dataDir, mode);
  try {
    database.configure('busyTimeout', 5000);
    return await work((sql) => promisify<string, Row[]>(database.all.bind(database))(sql));
  } finally {
    await promisify(database.close.bind(database))();
  }
}

/**
 * Reads every row of every table, sorted by content so that two dumps can be compared.
 * @param except tables to leave out
 */
export function dumpDatabase(
  dataDir: string,
  except: readonly string[] = [],
): Promise<Record<string, string[]>> {
  return withFile(dataDir, sqlite3.OPEN_READONLY, async (all) => {
    const tables = await all("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    const dump: Record<string, string[]> = {};
    for (const { name } of tables) {
      if (except.includes(String(name))) continue;
      const rows = await all(`SELECT * FROM "${String(name)}"`);
      dump[String(name)] = rows.map((row) => JSON.stringify(row)).sort();
    }
    return dump;
  });
}

/** Runs the statements in order. @returns the rows of the last one */
export function execute(dataDir: string, ...statements: readonly string[]): Promise<Row[]> {
  return withFile(dataDir, sqlite3.OPEN_READWRITE, async (all) => {
    let rows: Row[] = [];
    for (const statement of statements) rows = await all(statement);
    return rows;
  });
}

/** Runs statements and then recomputes all MACs, like an attacker who has the keys. */
export async function executeSealed(dataDir: string, ...statements: readonly string[]): Promise<void> {
  await execute(dataDir, ...statements);
  const store = await openStore(loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} }));
  try {
    for (const [kid, terms] of await stateMacs(store))
      await store.database.transaction(async (tx) => {
        for (const row of await tx('consent_state').where({ kid })) {
          const { principal, purpose } = row;
          const mac = terms.stateMac.ofState(principal, purpose, toStateRow(row));
          await tx('consent_state').where({ kid, principal, purpose }).update({ mac });
        }
        for (const row of await tx('consent_principals').where({ kid })) {
          const { principal } = row;
          const mac = terms.stateMac.ofPrincipal(principal, toPrincipalRow(row));
          await tx('consent_principals').where({ kid, principal }).update({ mac });
        }
        await bumpTenant(tx, kid);
        await macTerms(tx, terms);
      });
  } finally {
    await store.database.close();
  }
}

/** Takes the write lock of the file. @returns a function that releases it */
export async function lockDatabase(dataDir: string): Promise<() => Promise<void>> {
  const database = await openFile(dataDir, sqlite3.OPEN_READWRITE);
  await promisify<string, void>(database.exec.bind(database))('BEGIN IMMEDIATE');
  return async () => {
    await promisify<string, void>(database.exec.bind(database))('ROLLBACK');
    await promisify(database.close.bind(database))();
  };
}

export interface NotedStatement {
  readonly sql: string;
  readonly bindings: readonly unknown[];
}

/**
 * Notes each statement of a pool or a transaction before it is sent.
 * @returns ends it
 */
export function noteStatements(db: Knex, note: (statement: NotedStatement) => unknown): () => void {
  const client = db.client as { ask: Ask };
  const ask = client.ask;
  client.ask = (sql, bindings, wants) => {
    note({ sql, bindings });
    return ask(sql, bindings, wants);
  };
  return () => {
    client.ask = ask;
  };
}

/** A statement takes a limited number of values. */
export async function insertBatches(tx: Knex, table: string, rows: readonly object[]): Promise<void> {
  for (const batch of chunksOf(rows, 100)) await tx(table).insert(batch);
}
