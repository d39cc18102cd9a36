import type { Knex } from 'knex';
import { chunksOf, memoised, pagesBy } from '../lib/collections.ts';
import { WriteUndone } from '../lib/errors.ts';
import type { QueryClient } from './builder.ts';

/** A transaction, also one that takes raw SQL only. */
export type Transaction = Knex.Transaction;

export type Bindings = (string | number | boolean | null)[];

/**
 * Runs SQL with `?` for each binding, past knex, whose builder and formatter cost more than SQLite does. On
 * SQLite it stays prepared: `sql` is one of few texts.
 */
export function runSql<Found>(db: Knex, sql: string, bindings: Bindings): Promise<readonly Found[]> {
  const client = db.client as QueryClient;
  const answer = client.ask(client.positionBindings(sql) as string, bindings, 'few');
  return answer.then(({ rows }) => rows as readonly Found[]);
}

/** True on PostgreSQL; SQLite's one writer locks the whole file. */
export const hasRowLocks = (db: Knex): boolean => (db.client as Knex.Client).dialect === 'postgresql';

/** The clause of a SELECT that locks what it finds, where rows have locks. */
export const lockClause = (db: Knex, clause: string): string => (hasRowLocks(db) ? clause : '');

/** A row of a table under the names that the code has for its columns: `created_at` is `createdAt`. */

type Snake<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Snake<Tail>}`
  : '';

export type Columns<T> = { readonly [Name in keyof T & string as Snake<Name>]: T[Name] };

const renamed = (value: object, rename: (name: string) => string): unknown =>
  Object.fromEntries(Object.entries(value).map(([name, cell]) => [rename(name), cell]));

export const toColumns = <T extends object>(value: T): Columns<T> =>
  renamed(value, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)) as Columns<T>;

export const fromColumns = <T extends object>(row: Columns<T>): T =>
  renamed(row, (name) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())) as T;

/** Knex answers raw SQL with rows on SQLite and with a result object on PostgreSQL. */
export function rowsOf<Row>(result: unknown): readonly Row[] {
  return Array.isArray(result) ? (result as Row[]) : ((result as { rows?: Row[] }).rows ?? []);
}

export async function countOf(rows: Knex.QueryBuilder): Promise<number> {
  const [row] = (await rows.count({ n: '*' })) as { n: number }[];
  return Number(row?.n ?? 0);
}

/**
 * Reads back a change whose effect matters: none of these rows may be left.
 * @throws {WriteUndone} with this failure
 */
export async function requireNone(
  tx: Knex.Transaction,
  rows: Knex.QueryBuilder,
  failure: string,
): Promise<void> {
  // A deferred trigger would run after this, at the COMMIT.
  if (hasRowLocks(tx)) await tx.raw('SET CONSTRAINTS ALL IMMEDIATE');
  if (((await rows.limit(1)) as unknown[]).length > 0) throw new WriteUndone(failure);
}

/** Counts no further than `cap + 1`: a page must not cost more because there are many rows. */
export const countUpTo = (db: Knex, rows: Knex.QueryBuilder, cap: number): Promise<number> =>
  countOf(
    db(
      rows
        .select(db.raw('1 as one'))
        .limit(cap + 1)
        .as('some'),
    ),
  );

/** One column of the first row; undefined: no row. */
export async function cellOf<Cell>(rows: Knex.QueryBuilder, column: string): Promise<Cell | undefined> {
  const [cell] = (await rows.limit(1).pluck(column)) as Cell[];
  return cell;
}

/**
 * The next page of a query after the row `after`, in the order of these columns, which must be unique
 * together.
 */
export async function pageBehind<Row extends object>(
  query: Knex.QueryBuilder,
  key: readonly string[],
  size: number,
  after: Row | undefined,
): Promise<Row[]> {
  const page = query
    .clone()
    .orderBy([...key])
    .limit(size);
  if (after === undefined) return (await page) as Row[];
  const cells = after as Readonly<Record<string, Knex.Value>>;
  const values = key.map((name) => cells[name.slice(name.lastIndexOf('.') + 1)] ?? null);
  const [names, marks] = [key.map(() => '??'), key.map(() => '?')];
  return (await page.whereRaw(`(${names.join()}) > (${marks.join()})`, [...key, ...values])) as Row[];
}

/** All pages, one short read each. */
export const pagesOf = <Row extends object>(query: Knex.QueryBuilder, key: readonly string[], size: number) =>
  pagesBy<Row>(size, (after) => pageBehind(query, key, size, after));

/** SQL with the values of its placeholders. */
interface Bound {
  readonly sql: string;
  readonly bindings: Bindings;
}

const placeholders = (count: number): string => Array(count).fill('?').join(',');

/** The text after IN for a list of keys, with one binding: the text stays the same for any number of keys. */
function keyList(db: Knex, keys: readonly (string | number)[]): Bound {
  if (!hasRowLocks(db)) return { sql: '(SELECT value FROM json_each(?))', bindings: [JSON.stringify(keys)] };
  const type = typeof keys[0] === 'number' ? 'bigint' : 'text';
  // Not `= ANY`: without statistics of the column PostgreSQL then reads the whole table.
  return { sql: `(SELECT unnest(?::${type}[]))`, bindings: [keys] as unknown as Bindings };
}

const whereIn = (rows: Knex.QueryBuilder, column: string, { sql, bindings }: Bound): Knex.QueryBuilder =>
  rows.whereRaw(`?? IN ${sql}`, [column, ...(bindings as Knex.Value[])]);

export const whereAmong = (
  rows: Knex.QueryBuilder,
  db: Knex,
  column: string,
  keys: readonly (string | number)[],
): Knex.QueryBuilder => whereIn(rows, column, keyList(db, keys));

/**
 * Like {@link whereAmong}, for few keys: SQLite sees in a list how few they are, and uses an index instead of
 * reading all rows of the tenant.
 */
export const whereOneOf = (
  rows: Knex.QueryBuilder,
  db: Knex,
  column: string,
  keys: readonly string[],
): Knex.QueryBuilder => {
  const list = { sql: `(${placeholders(keys.length)})`, bindings: [...keys] };
  return whereIn(rows, column, hasRowLocks(db) ? keyList(db, keys) : list);
};

/** Column `i` of a row that is an array in JSON. */
const cells = (count: number): string => Array.from({ length: count }, (_, i) => `value ->> ${i}`).join(', ');

/** Without a WHERE the parser takes the ON of ON CONFLICT for a join's (sqlite.org/lang_upsert.html). */
const fromJson = memoised(
  (columns: number): string => `SELECT ${cells(columns)} FROM jsonb_each(?) WHERE true`,
);

/** PostgreSQL takes 65,535 parameters a statement. */
const MAX_PARAMETERS = 60_000;

/**
 * Inserts all rows, as one statement where the database takes so many; nothing for no rows.
 * @param head `INSERT INTO table (columns)`
 * @param tail what an existing row makes of it, and what is returned
 */
export async function insertMany<Found>(
  tx: Knex,
  head: string,
  rows: readonly Bindings[],
  tail = '',
): Promise<readonly Found[]> {
  const columns = rows[0]?.length ?? 0;
  if (columns === 0) return [];
  // The rows are one parameter, so that the text stays the same and the statement prepared.
  if (!hasRowLocks(tx)) return runSql(tx, `${head} ${fromJson(columns)} ${tail}`, [JSON.stringify(rows)]);
  const results: Found[] = [];
  for (const chunk of chunksOf(rows, Math.floor(MAX_PARAMETERS / columns))) {
    const values = Array(chunk.length)
      .fill(`(${placeholders(columns)})`)
      .join(',');
    results.push(...(await runSql<Found>(tx, `${head} VALUES ${values} ${tail}`, chunk.flat())));
  }
  return results;
}

/** The columns of rows that are asked about, with their SQL types. */
type ColumnTypes = Readonly<Record<string, 'text' | 'integer' | 'bigint'>>;

/** A common table `q(i, …columns)` of the rows that are asked about. */
function askedTable(db: Knex, columns: ColumnTypes, rows: readonly Bindings[]): Bound {
  const names = Object.keys(columns).join(', ');
  const types = ['integer', ...Object.values(columns)];
  if (!hasRowLocks(db)) {
    const select = `SELECT key, ${cells(types.length - 1)} FROM jsonb_each(?)`;
    return { sql: `WITH q(i, ${names}) AS MATERIALIZED (${select})`, bindings: [JSON.stringify(rows)] };
  }
  // The planner knows how short a VALUES list is. PostgreSQL takes the types from its first row.
  const first = `(${types.map((type) => `CAST(? AS ${type})`).join(', ')})`;
  const further = Array<string>(rows.length - 1).fill(`(${placeholders(types.length)})`);
  return {
    sql: `WITH q(i, ${names}) AS (VALUES ${[first, ...further].join(',')})`,
    bindings: rows.flatMap((row, i): Bindings => [i, ...row]),
  };
}

/**
 * A SELECT or UPDATE that reads a common table `q(i, …columns)` of the rows that are asked about; `bindings`
 * follow in `sql`.
 */
export async function runAsked<Found>(
  db: Knex,
  {
    columns,
    rows,
    sql,
  }: { readonly columns: ColumnTypes; readonly rows: readonly Bindings[]; readonly sql: string },
  ...bindings: Bindings
): Promise<readonly Found[]> {
  if (rows.length === 0) return [];
  const q = askedTable(db, columns, rows);
  return runSql<Found>(db, `${q.sql} ${sql}`, [...q.bindings, ...bindings]);
}

/**
 * A LEFT JOIN of the table `q` of {@link runAsked} with the one row that a unique key finds; `condition` may
 * contain `?` and columns of `q`.
 */
export function joinRow(db: Knex, table: string, alias: string, condition: string): string {
  if (!hasRowLocks(db)) return `LEFT JOIN ${table} ${alias} ON ${condition}`;
  // It has no statistics of columns that name a person, and in a plain join would compare each row of the
  // tenant.
  return `LEFT JOIN LATERAL (SELECT * FROM ${table} ${alias} WHERE ${condition} LIMIT 1) ${alias} ON true`;
}

/**
 * Like {@link joinRow}, with all rows that an index finds; OFFSET 0 keeps PostgreSQL from making a plain join
 * of it.
 */
export const joinRows = (db: Knex, table: string, alias: string, index: string, condition: string): string =>
  hasRowLocks(db)
    ? `LEFT JOIN LATERAL (SELECT * FROM ${table} ${alias} WHERE ${condition} OFFSET 0) ${alias} ON true`
    : `LEFT JOIN ${table} ${alias} INDEXED BY ${index} ON ${condition}`;

/**
 * A table in a FROM that is searched by this index. SQLite would rather read all rows of the tenant in the
 * order of the primary key: without statistics it takes any column of a key for equally selective.
 */
export const byIndex = (db: Knex, table: string, index: string): string =>
  hasRowLocks(db) ? table : `${table} INDEXED BY ${index}`;

type Queries<T extends readonly unknown[]> = { readonly [K in keyof T]: () => Promise<T[K]> };

/**
 * Runs statements that do not need each other's results, in any order. PostgreSQL gets all of them in one
 * round trip, so a tenant's log is locked for less time (a third more grants a second); on SQLite the event
 * loop is woken less often.
 * @throws {Error} the first error, once none of them runs any more: a statement after the ROLLBACK would
 * commit alone. After a deadlock PostgreSQL refuses the others with another code, and only the first is worth
 * a retry.
 */
export async function sendTogether<T extends readonly unknown[]>(...queries: Queries<T>): Promise<T> {
  // `async` makes a query that throws before it asks anything wait for the others, too.
  const running = queries.map(async (ask) => ask());
  try {
    return (await Promise.all(running)) as unknown as T;
  } finally {
    await Promise.allSettled(running);
  }
}

/** A boolean column: true on PostgreSQL, 1 on SQLite. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 1;
}
