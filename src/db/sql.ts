import type { Knex } from 'knex';
import { pagesBy } from '../lib/collections.ts';
import { WriteUndone } from '../lib/errors.ts';
import { type Bindings, type ColumnTypes, dialectOf, type Executor } from './dialect.ts';

/** A transaction that takes raw SQL; it may lack knex's builder. */
export type Transaction = Knex.Transaction | Exclude<Executor, Knex>;

export type { Bindings } from './dialect.ts';

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
  if (dialectOf(tx).hasRowLocks) await tx.raw('SET CONSTRAINTS ALL IMMEDIATE');
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

/** True on PostgreSQL; SQLite's one writer locks the whole file. */
export const hasRowLocks = (db: Executor): boolean => dialectOf(db).hasRowLocks;

/** The clause of a SELECT that locks what it finds, where rows have locks. */
export const lockClause = (db: Executor, clause: string): string => (hasRowLocks(db) ? clause : '');

export function whereAmong(
  rows: Knex.QueryBuilder,
  db: Knex,
  column: string,
  keys: readonly (string | number)[],
): Knex.QueryBuilder {
  const { sql, bindings } = dialectOf(db).keys(keys);
  return rows.whereRaw(`?? IN ${sql}`, [column, ...(bindings as Knex.Value[])]);
}

/**
 * Like {@link whereAmong}, for few keys: SQLite then uses an index instead of reading all rows of the tenant.
 */
export function whereOneOf(
  rows: Knex.QueryBuilder,
  db: Knex,
  column: string,
  keys: readonly string[],
): Knex.QueryBuilder {
  const { sql, bindings } = dialectOf(db).fewKeys(keys);
  return rows.whereRaw(`?? IN ${sql}`, [column, ...(bindings as Knex.Value[])]);
}

/** A statement with `?` for each binding. On SQLite it stays prepared: `sql` is one of few texts. */
export const runSql = async <Found>(
  db: Executor,
  sql: string,
  bindings: Bindings,
): Promise<readonly Found[]> => (await dialectOf(db).run(db, sql, bindings)) as readonly Found[];

/** Runs a query that each step of a long deletion builds alike: on SQLite it stays prepared. */
export const runStep = async <Found>(tx: Knex, built: Knex.QueryBuilder): Promise<readonly Found[]> =>
  (await dialectOf(tx).runBuilt(tx, built)) as readonly Found[];

/**
 * Inserts all rows, as one statement where the database takes so many; nothing for no rows.
 * @param head `INSERT INTO table (columns)`
 * @param tail what an existing row makes of it, and what is returned
 */
export async function insertMany<Found>(tx: Executor, head: string, rows: readonly Bindings[], tail = '') {
  if (rows.length === 0) return [];
  return (await dialectOf(tx).insertMany(tx, head, rows, tail)) as readonly Found[];
}

/**
 * A SELECT or UPDATE that reads a common table `q(i, …columns)` of the rows that are asked about; `bindings`
 * follow in `sql`.
 */
export async function runAsked<Found>(
  db: Executor,
  {
    columns,
    rows,
    sql,
  }: { readonly columns: ColumnTypes; readonly rows: readonly Bindings[]; readonly sql: string },
  ...bindings: Bindings
): Promise<readonly Found[]> {
  if (rows.length === 0) return [];
  const q = dialectOf(db).asked(columns, rows);
  return runSql<Found>(db, `${q.sql} ${sql}`, [...q.bindings, ...bindings]);
}

/**
 * A LEFT JOIN of the table `q` of {@link runAsked} with the one row that a unique key finds; `condition` may
 * contain `?` and columns of `q`.
 */
export const joinRow = (db: Executor, table: string, alias: string, condition: string): string =>
  dialectOf(db).joinRow(table, alias, condition);

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
