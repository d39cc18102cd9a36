import { join } from 'node:path';
import { promisify } from 'node:util';
import sqlite3 from 'sqlite3';

/** The SQLite file beside a running gpd, as another process sees it. */

type Row = Readonly<Record<string, unknown>>;

function open(dataDir: string, mode: number): Promise<sqlite3.Database> {
  return new Promise((resolve, reject) => {
    const database = new sqlite3.Database(join(dataDir, 'gpd.db'), mode, (error) =>
      error ? reject(error) : resolve(database),
    );
  });
}

async function using<T>(
  dataDir: string,
  mode: number,
  work: (all: (sql: string) => Promise<Row[]>) => Promise<T>,
): Promise<T> {
  const database = await open(dataDir, mode);
  try {
    database.configure('busyTimeout', 5000);
    return await work((sql) => promisify<string, Row[]>(database.all.bind(database))(sql));
  } finally {
    await promisify(database.close.bind(database))();
  }
}

/**
 * Every row of every table, in an order that depends on the rows alone.
 * @param except tables to leave out
 */
export function dumpDatabase(
  dataDir: string,
  except: readonly string[] = [],
): Promise<Record<string, string[]>> {
  return using(dataDir, sqlite3.OPEN_READONLY, async (all) => {
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

/** Runs statements one after the other, as an operator with sqlite3 in hand might. */
export function execute(dataDir: string, ...statements: readonly string[]): Promise<Row[]> {
  return using(dataDir, sqlite3.OPEN_READWRITE, async (all) => {
    let rows: Row[] = [];
    for (const statement of statements) rows = await all(statement);
    return rows;
  });
}

/** Holds the write lock of the file until the returned function is called. */
export async function lockDatabase(dataDir: string): Promise<() => Promise<void>> {
  const database = await open(dataDir, sqlite3.OPEN_READWRITE);
  await promisify<string, void>(database.exec.bind(database))('BEGIN IMMEDIATE');
  return async () => {
    await promisify<string, void>(database.exec.bind(database))('ROLLBACK');
    await promisify(database.close.bind(database))();
  };
}
