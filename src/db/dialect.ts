import type { Knex } from 'knex';
import { chunksOf, memoised } from '../lib/collections.ts';
import { type PlainTransaction, runSqlite } from './sqlite-client.ts';

/** Each difference between the SQL of SQLite and PostgreSQL is one method here. */

/** A pool, or a transaction of either kind. */
export type Executor = Knex | PlainTransaction;

export type Bindings = (string | number | boolean | null)[];

/** SQL with the values of its placeholders. */
interface Bound {
  readonly sql: string;
  readonly bindings: Bindings;
}

/** The columns of rows that are asked about, with their SQL types. */
export type ColumnTypes = Readonly<Record<string, 'text' | 'integer' | 'bigint'>>;

export interface Dialect {
  /** SQLite's one writer has the whole file, and no row needs a lock. */
  readonly hasRowLocks: boolean;
  /** One statement, with `?` for each binding. */
  run(db: Executor, sql: string, bindings: Bindings): Promise<readonly unknown[]>;
  /**
   * Runs the query of a builder. SQLite keeps the statement prepared, which knex does not: `built` must have
   * one of few shapes.
   */
  runBuilt(db: Knex, built: Knex.QueryBuilder): Promise<readonly unknown[]>;
  /** `head`, all rows, `tail`: one statement for as many rows as it takes. */
  insertMany(
    db: Executor,
    head: string,
    rows: readonly Bindings[],
    tail: string,
  ): Promise<readonly unknown[]>;
  /**
   * The text after IN for a list of keys, with one binding: the text stays the same for any number of keys.
   */
  keys(keys: readonly (string | number)[]): Bound;
  /** Like `keys`, for few keys. */
  fewKeys(keys: readonly (string | number)[]): Bound;
  /** A common table `q(i, …columns)` of the rows that are asked about. */
  asked(columns: ColumnTypes, rows: readonly Bindings[]): Bound;
  /** A join with the one row that a unique key finds, or with none. */
  joinRow(table: string, alias: string, condition: string): string;
}

const placeholders = (count: number): string => Array(count).fill('?').join(',');

/** Column `i` of a row that is an array in JSON. */
const cells = (count: number): string => Array.from({ length: count }, (_, i) => `value ->> ${i}`).join(', ');

/** Without a WHERE the parser takes the ON of ON CONFLICT for a join's (sqlite.org/lang_upsert.html). */
const fromJson = memoised(
  (columns: number): string => `SELECT ${cells(columns)} FROM jsonb_each(?) WHERE true`,
);

const sqlite: Dialect = {
  hasRowLocks: false,
  run: (db, sql, bindings) => ('run' in db ? db.run(sql, bindings) : runSqlite(db, sql, bindings)),
  runBuilt(db, built) {
    const { sql, bindings } = built.toSQL().toNative();
    return runSqlite(db, sql, bindings);
  },
  /**
   * All rows are one parameter: binding each value costs the main thread more than parsing them costs SQLite.
   */
  insertMany: (db, head, rows, tail) =>
    sqlite.run(db, `${head} ${fromJson(rows[0]?.length ?? 0)} ${tail}`, [JSON.stringify(rows)]),
  keys: (keys) => ({ sql: '(SELECT value FROM json_each(?))', bindings: [JSON.stringify(keys)] }),
  /** SQLite sees in a list how few they are, and does not read the whole index of the tenant. */
  fewKeys: (keys) => ({ sql: `(${placeholders(keys.length)})`, bindings: [...keys] }),
  asked(columns, rows) {
    const names = Object.keys(columns);
    const select = `SELECT key, ${cells(names.length)} FROM jsonb_each(?)`;
    return {
      sql: `WITH q(i, ${names.join(', ')}) AS MATERIALIZED (${select})`,
      bindings: [JSON.stringify(rows)],
    };
  },
  joinRow: (table, alias, condition) => `LEFT JOIN ${table} ${alias} ON ${condition}`,
};

/** PostgreSQL takes 65,535 parameters a statement. */
const MAX_PARAMETERS = 60_000;

const valuesSql = memoised((shape: string): string => {
  const [columns = 0, rows = 0] = shape.split('x').map(Number);
  return Array(rows)
    .fill(`(${placeholders(columns)})`)
    .join(',');
});

/** Not `= ANY`: without statistics of the column PostgreSQL then reads the whole table. */
function postgresKeys(keys: readonly (string | number)[]): Bound {
  const type = typeof keys[0] === 'number' ? 'bigint' : 'text';
  return { sql: `(SELECT unnest(?::${type}[]))`, bindings: [keys] as unknown as Bindings };
}

const postgres: Dialect = {
  hasRowLocks: true,
  async run(db, sql, bindings) {
    const { rows } = (await (db as Knex).raw(sql, bindings as Knex.Value[])) as {
      readonly rows: readonly unknown[];
    };
    return rows;
  },
  runBuilt: async (_db, built) => (await built) as readonly unknown[],
  async insertMany(db, head, rows, tail) {
    const columns = rows[0]?.length ?? 0;
    const results: unknown[] = [];
    for (const chunk of chunksOf(rows, Math.floor(MAX_PARAMETERS / columns))) {
      const sql = `${head} VALUES ${valuesSql(`${columns}x${chunk.length}`)} ${tail}`;
      results.push(...(await postgres.run(db, sql, chunk.flat())));
    }
    return results;
  },
  keys: postgresKeys,
  fewKeys: postgresKeys,
  /**
   * A VALUES list, of which the planner knows how short it is. PostgreSQL takes the types from its first row.
   */
  asked(columns, rows) {
    const types = ['integer', ...Object.values(columns)];
    const first = `(${types.map((type) => `CAST(? AS ${type})`).join(', ')})`;
    const further = Array<string>(rows.length - 1).fill(`(${placeholders(types.length)})`);
    return {
      sql: `WITH q(i, ${Object.keys(columns).join(', ')}) AS (VALUES ${[first, ...further].join(',')})`,
      bindings: rows.flatMap((row, i): Bindings => [i, ...row]),
    };
  },
  /**
   * It has no statistics of columns that name a person, and in a plain join would compare each row of the
   * tenant.
   */
  joinRow: (table, alias, condition) =>
    `LEFT JOIN LATERAL (SELECT * FROM ${table} ${alias} WHERE ${condition} LIMIT 1) ${alias} ON true`,
};

/** The dialect of a pool or of a transaction. */
export const dialectOf = (db: Executor): Dialect =>
  (db.client as { readonly dialect: string }).dialect === 'postgresql' ? postgres : sqlite;
