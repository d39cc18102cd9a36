import type { Knex } from 'knex';
import { runSqlite } from './sqlite-client.ts';

/** What the hot statements share: multi-row SQL that both databases take, with its text made once a shape. */

const rowSql = new Map<string, string>();
const CACHED_ROWS = 400;

export type Bindings = (string | number | null)[];

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

/** knex.raw answers with rows on SQLite and with a result object on PostgreSQL. */
export function rowsOf<Row>(result: unknown): readonly Row[] {
  return Array.isArray(result) ? (result as Row[]) : ((result as { rows?: Row[] }).rows ?? []);
}

/** A statement of the hot path. Both drivers take `?`; knex turns it into PostgreSQL's form. */
export async function runHot<Row>(knex: Knex, sql: string, bindings: Bindings): Promise<readonly Row[]> {
  const { dialect } = knex.client as { readonly dialect: string };
  if (dialect === 'sqlite3') return (await runSqlite(knex, sql, bindings)) as readonly Row[];
  return rowsOf<Row>(await knex.raw(sql, bindings as Knex.Value[]));
}

/** SQLite takes 32,766 parameters a statement, PostgreSQL 65,535. */
const MAX_PARAMETERS = 30_000;

/** `head VALUES (…),(…) tail`, in as many statements as the rows need; nothing for no rows. */
export async function insertMany<Row>(
  tx: Knex.Transaction,
  head: string,
  rows: readonly Bindings[],
  tail = '',
): Promise<readonly Row[]> {
  const columns = rows[0]?.length;
  if (columns === undefined) return [];
  const step = Math.floor(MAX_PARAMETERS / columns);
  const results: Row[] = [];
  for (let i = 0; i < rows.length; i += step) {
    const chunk = rows.slice(i, i + step);
    const sql = `${head} VALUES ${placeholders(columns, chunk.length)} ${tail}`;
    results.push(...(await runHot<Row>(tx, sql, chunk.flat())));
  }
  return results;
}

/** A boolean column: true on PostgreSQL, 1 on SQLite. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 1;
}
