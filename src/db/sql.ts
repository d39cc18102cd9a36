import type { Knex } from 'knex';
import { chunksOf, pagesBy } from '../lib/collections.ts';
import { memoised } from '../lib/functions.ts';
import type { ClientInternals } from './availability.ts';
import { runSqlite, type SqliteTransaction, type StatementBatch } from './sqlite.ts';

/** What the hot statements share: multi-row SQL that both databases take, with its text made once a shape. */

const rowSql = new Map<string, string>();
const CACHED_ROWS = 400;

export type Bindings = (string | number | boolean | null)[];

/** `(?,?),(?,?)…` */
function placeholders(columns: number, rows: number): string {
  const key = `${columns}x${rows}`;
  let sql = rowSql.get(key);
  if (sql === undefined) {
    const row = `(${Array(columns).fill('?').join(',')})`;
    sql = Array(rows).fill(row).join(',');
    // Wide batches come in too many shapes to keep them all.
    if (rows <= CACHED_ROWS) rowSql.set(key, sql);
  }
  return sql;
}

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

/** knex.raw answers with rows on SQLite and with a result object on PostgreSQL. */
export function rowsOf<Row>(result: unknown): readonly Row[] {
  return Array.isArray(result) ? (result as Row[]) : ((result as { rows?: Row[] }).rows ?? []);
}

/** How many rows a query finds. */
export async function countOf(rows: Knex.QueryBuilder): Promise<number> {
  const [row] = (await rows.count({ n: '*' })) as { n: number }[];
  return Number(row?.n ?? 0);
}

/** The same, but no further than `cap + 1`: a page must not cost more because there are many. */
export const countUpTo = (db: Knex, rows: Knex.QueryBuilder, cap: number): Promise<number> =>
  countOf(
    db(
      rows
        .select(db.raw('1 as one'))
        .limit(cap + 1)
        .as('some'),
    ),
  );

/** What one column of the first row holds; undefined: there is no row. */
export async function cellOf<Cell>(rows: Knex.QueryBuilder, column: string): Promise<Cell | undefined> {
  const [cell] = (await rows.limit(1).pluck(column)) as Cell[];
  return cell;
}

/** The rows of a query behind `after`, in the order of these columns, which tell its rows apart. */
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

/** All of them, a short read a page. */
export const pagesOf = <Row extends object>(query: Knex.QueryBuilder, key: readonly string[], size: number) =>
  pagesBy<Row>(size, (after) => pageBehind(query, key, size, after));

/** Takes statements inside of one transaction. */
export type HotTransaction = Knex.Transaction | SqliteTransaction;
/** Takes statements, inside of a transaction or not. */
export type Hot = Knex | HotTransaction;

function bypassesKnex(hot: Hot): hot is SqliteTransaction {
  return 'runBatch' in hot;
}

/** On PostgreSQL, where rows have locks: SQLite's one writer holds the whole file. */
export function hasRowLocks(hot: Hot): boolean {
  return !bypassesKnex(hot) && (hot.client as { readonly dialect: string }).dialect === 'postgresql';
}

/** One parameter for all ids: a text with as many placeholders would be built, sent and parsed each time. */
export function whereAmong(
  rows: Knex.QueryBuilder,
  db: Knex,
  column: string,
  ids: readonly (string | number)[],
): Knex.QueryBuilder {
  if (!hasRowLocks(db))
    return rows.whereRaw('?? IN (SELECT value FROM json_each(?))', [column, JSON.stringify(ids)]);
  const type = typeof ids[0] === 'number' ? 'bigint' : 'text';
  // Not `= ANY`: without statistics of the column PostgreSQL then reads the whole table.
  return rows.whereRaw(`?? IN (SELECT unnest(?::${type}[]))`, [column, ids as string[]]);
}

/** The same for few ids: SQLite sees in a list how few they are, and does not read the whole index of the tenant. */
export const whereOneOf = (
  rows: Knex.QueryBuilder,
  db: Knex,
  column: string,
  ids: readonly string[],
): Knex.QueryBuilder => (hasRowLocks(db) ? whereAmong(rows, db, column, ids) : rows.whereIn(column, ids));

/** A statement of the hot path. Both drivers take `?`; knex turns it into PostgreSQL's form. */
export async function runHot<Row>(hot: Hot, sql: string, bindings: Bindings): Promise<readonly Row[]> {
  if (bypassesKnex(hot)) return (await hot.run(sql, bindings)) as readonly Row[];
  if (!hasRowLocks(hot)) return (await runSqlite(hot, sql, bindings)) as readonly Row[];
  return rowsOf<Row>(await hot.raw(sql, bindings as Knex.Value[]));
}

/** What is built the same way for each step of a long deletion: on SQLite it stays prepared, which knex's statements do not. */
export async function runStep<Row>(tx: Knex, built: Knex.QueryBuilder): Promise<readonly Row[]> {
  if (hasRowLocks(tx)) return (await built) as readonly Row[];
  const { sql, bindings } = built.toSQL().toNative();
  return (await runSqlite(tx, sql, bindings)) as readonly Row[];
}

/** PostgreSQL takes 65,535 parameters a statement. */
const MAX_PARAMETERS = 60_000;

/** On SQLite all rows are one parameter: binding each value costs the main thread more than parsing them costs SQLite. */
const fromJson = memoised((columns: number): string => {
  const values = Array.from({ length: columns }, (_, i) => `value ->> ${i}`);
  // Without a WHERE the parser takes the ON of ON CONFLICT for a join's (sqlite.org/lang_upsert.html).
  return `SELECT ${values.join(', ')} FROM jsonb_each(?) WHERE true`;
});

/** `head`, all rows, `tail`, in as many statements as they need; nothing for no rows. */
export async function insertMany<Row>(tx: Hot, head: string, rows: readonly Bindings[], tail = '') {
  const columns = rows[0]?.length;
  if (columns === undefined) return [];
  if (!hasRowLocks(tx))
    return runHot<Row>(tx, `${head} ${fromJson(columns)} ${tail}`, [JSON.stringify(rows)]);
  const step = Math.floor(MAX_PARAMETERS / columns);
  const results: Row[] = [];
  for (const chunk of chunksOf(rows, step)) {
    const sql = `${head} VALUES ${placeholders(columns, chunk.length)} ${tail}`;
    results.push(...(await runHot<Row>(tx, sql, chunk.flat())));
  }
  return results;
}

/** @param tail what an existing row makes of it */
export function insertInto(table: string, columns: readonly string[], tail = '') {
  return { head: `INSERT INTO ${table} (${columns.join(', ')})`, columns: columns.length, tail };
}

/**
 * Inserts of one transaction that answer nothing, in their order: as raw statements they are one batch.
 * @param name of no table
 * @returns takes the rows of each
 */
export function makeInserts(
  name: string,
  inserts: readonly ReturnType<typeof insertInto>[],
): (tx: HotTransaction, rows: readonly (readonly Bindings[])[]) => Promise<void> {
  const statements = inserts.map(({ head, columns, tail }) => `${head} ${fromJson(columns)} ${tail}`);
  const batch: StatementBatch = { view: name, statements };
  return async (tx, rows) => {
    if (bypassesKnex(tx)) {
      const bindings = rows.map((of) => JSON.stringify(of));
      await tx.runBatch(batch, bindings);
      return;
    }
    // In this order, without waiting for one's answer to send the next.
    await Promise.all(inserts.map(({ head, tail }, i) => insertMany(tx, head, rows[i] ?? [], tail)));
  };
}

export type ColumnTypes = Readonly<Record<string, 'text' | 'integer' | 'bigint'>>;

const headOf = (columns: ColumnTypes): string => `WITH q(i, ${Object.keys(columns).join(', ')}) AS`;

/** The same as {@link askedRows} for SQLite: its one binding is the rows as JSON. */
function askedJson(columns: ColumnTypes): string {
  const values = Object.keys(columns).map((_, i) => `value ->> ${i}`);
  return `${headOf(columns)} MATERIALIZED (SELECT key, ${values.join(', ')} FROM jsonb_each(?))`;
}

/**
 * A common table `q(i, …columns)` of the rows that are asked about, typed by the SQL types of `columns`, with the
 * bindings that fill it.
 */
export function askedRows(hot: Hot, columns: ColumnTypes, rows: readonly Bindings[]) {
  if (!hasRowLocks(hot)) return { sql: askedJson(columns), bindings: [JSON.stringify(rows)] };
  // PostgreSQL takes the types of a VALUES list from its first row.
  const types = ['integer', ...Object.values(columns)];
  const first = `(${types.map((type) => `CAST(? AS ${type})`).join(', ')})`;
  const further = `(${types.map(() => '?').join(', ')})`;
  const values = [first, ...Array<string>(rows.length - 1).fill(further)].join(',');
  return {
    sql: `${headOf(columns)} (VALUES ${values})`,
    bindings: rows.flatMap((row, i): Bindings => [i, ...row]),
  };
}

/** A boolean column: true on PostgreSQL, 1 on SQLite. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 1;
}

/** Reads that share a step, as `makeInserts` is for what is written. */

export interface Read {
  /** Of what is asked about, the table `q(i, …)` of `sql`. */
  readonly about: ColumnTypes;
  /** The columns of the answer. */
  readonly columns: readonly string[];
  readonly sql: string;
}

/** The cells of a row in the order of `columns`; a sum is a text on PostgreSQL. */
export type Cells = readonly (string | number | boolean | null)[];

type Rows<T> = readonly (readonly T[])[];

/**
 * All answers as one row, a text of JSON each. A step of a connection is a turn of the thread pool and one of the event
 * loop, and each cell of a row is a call from the driver into V8: both cost more than the JSON does.
 */
function selectAll(reads: readonly Read[]): string {
  const answers = reads.map(({ about, columns, sql }, i) => {
    const cells = `json_group_array(json_array(${columns.join(', ')}))`;
    return `(SELECT ${cells} FROM (${askedJson(about)} ${sql})) AS answer${i}`;
  });
  return `SELECT ${answers.join(', ')}`;
}

async function inOneStep(hot: Hot, select: string, asked: Rows<Bindings>): Promise<Cells[][]> {
  const bindings = asked.map((rows) => JSON.stringify(rows));
  const [row] = await runHot<Record<string, string>>(hot, select, bindings);
  return asked.map((_, i) => JSON.parse(row?.[`answer${i}`] ?? '[]') as Cells[]);
}

async function oneByOne(hot: Hot, reads: readonly Read[], asked: Rows<Bindings>): Promise<Cells[][]> {
  const answers: Cells[][] = [];
  for (const [i, { about, columns, sql }] of reads.entries()) {
    const rows = asked[i] ?? [];
    const q = rows.length === 0 ? null : askedRows(hot, about, rows);
    const found = q ? await runHot<Record<string, string>>(hot, `${q.sql} ${sql}`, q.bindings) : [];
    answers.push(found.map((row) => columns.map((name) => row[name] ?? null)));
  }
  return answers;
}

/**
 * One statement batch in a transaction that bypasses knex, else one after the other.
 * @returns takes what each is asked about, and answers the rows of each
 */
export function makeReads(
  ...reads: readonly Read[]
): (hot: Hot, ...asked: Rows<Bindings>) => Promise<readonly (readonly Cells[])[]> {
  const select = selectAll(reads);
  return (hot, ...asked) => (bypassesKnex(hot) ? inOneStep(hot, select, asked) : oneByOne(hot, reads, asked));
}

/** Statements that share a round trip to PostgreSQL, so that a lock is held for less time. */

const unread = new WeakMap<object, Promise<unknown>>();

/** The writes of a transaction whose answers are still to be read: only they say whether anything was written. */
export const unreadWrites = (tx: object): Promise<unknown> | undefined => unread.get(tx);

/** Resolves when the driver has it: what follows, the COMMIT as a rule, is sent behind it, and no lock waits for an answer. */
async function sendUnread(tx: Knex.Transaction, sql: string, bindings: Bindings): Promise<void> {
  const client = tx.client as ClientInternals;
  const answer = client.query(await client.acquireConnection(), { sql, bindings });
  const all = Promise.all([unread.get(tx), answer]);
  all.catch(() => {});
  unread.set(tx, all);
}

/**
 * Writes of one transaction that touch a table each and whose answers nobody reads: on PostgreSQL one statement that is not waited
 * for, so that a lock is held for one round trip in place of many. `work` sends them by {@link runHot} and {@link insertMany}.
 */
export async function inOneStatement<T>(
  tx: HotTransaction,
  work: (tx: HotTransaction) => Promise<T>,
): Promise<T> {
  if (!hasRowLocks(tx)) return work(tx);
  const writes: { readonly sql: string; readonly bindings: Bindings }[] = [];
  const raw = (sql: string, bindings: Bindings): Promise<number> =>
    Promise.resolve(writes.push({ sql, bindings }));
  const result = await work(Object.create(tx, { raw: { value: raw } }) as HotTransaction);
  const bindings = writes.flatMap((write) => write.bindings);
  if (bindings.length > MAX_PARAMETERS) {
    for (const write of writes) await runHot(tx, write.sql, write.bindings);
  } else if (writes.length > 0) {
    const all = writes.map(({ sql }, i) => `w${i} AS (${sql})`).join(', ');
    await sendUnread(tx as Knex.Transaction, `WITH ${all} SELECT 1`, bindings);
  }
  return result;
}

type Work<T> = () => Promise<T>;

/**
 * Hot statements that do not wait for each other's answers: pipelined on PostgreSQL, so that a lock is held for one round trip. Each
 * sees what was committed when its turn came, so those behind a lock see what its last holder wrote. One after the other on SQLite.
 */
export async function pipelined<A, B, C>(
  tx: HotTransaction,
  ...[a, b, c]: readonly [Work<A>, Work<B>, Work<C>]
): Promise<[A, B, C]> {
  if (!hasRowLocks(tx)) return [await a(), await b(), await c()];
  return Promise.all([a(), b(), c()]);
}
