import { createHash } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { MOVED, MOVING } from '../db/meta-store.ts';
import { cellOf, countOf, hasRowLocks, pageBehind, pagesOf } from '../db/sql.ts';
import type { TableName } from '../rights/person-map.ts';
import { rowOf, TABLES } from '../rights/person-map.ts';

/**
 * Copies all rows into a database of either kind, table by table: for `gpd move`, and for backups of
 * PostgreSQL and their restore.
 */

type Row = Record<string, Knex.Value>;
/** Runs `work` in a transaction of the target. */
type Write = <T>(work: (tx: Knex.Transaction) => Promise<T>) => Promise<T>;

/**
 * `meta` is copied last, because it makes the copy an installation. Rate limits are not copied: their windows
 * end too soon.
 */
const SEPARATE_TABLES: readonly TableName[] = ['meta', 'rate_counters'];
const depthOf = (table: TableName): number => {
  if (table === 'tenants') return 0;
  return rowOf(table).with === undefined ? 1 : 2;
};

/** Parents before the rows that refer to them. */
export const COPIED_TABLES: readonly TableName[] = TABLES.filter(
  (table) => !SEPARATE_TABLES.includes(table),
).sort((a, b) => depthOf(a) - depthOf(b));

/**
 * Knex inserts several rows into SQLite by a compound SELECT, which takes 500 terms
 * (https://www.sqlite.org/limits.html).
 */
const PAGE = 500;
/** SQLite takes at most 32,766 parameters per statement (https://www.sqlite.org/limits.html). */
const MAX_CELLS = 30_000;

export async function countRows(from: Knex): Promise<number> {
  let rows = 0;
  for (const table of COPIED_TABLES) rows += await countOf(from(table));
  return rows;
}

/** SQLite stores booleans as 0 and 1, and PostgreSQL refuses numbers in a boolean column. */
function convertBooleans(row: Row, booleans: readonly string[]): Row {
  for (const name of booleans) if (typeof row[name] === 'number') row[name] = row[name] !== 0;
  return row;
}

async function copyTable(
  from: Knex,
  write: Write,
  table: TableName,
  onRows: (rows: number) => void,
): Promise<void> {
  const { key } = rowOf(table);
  const columns = await write((tx) => tx(table).columnInfo());
  const booleans = Object.keys(columns).filter((name) => columns[name]?.type === 'boolean');
  const size = Math.min(PAGE, Math.floor(MAX_CELLS / Object.keys(columns).length));
  let last: Row | undefined;
  for (;;) {
    const page: Row[] = await pageBehind(from<Row>(table), key, size, last);
    last = page.at(-1);
    if (last === undefined) return;
    await write(async (tx) => {
      await tx(table).insert(page.map((row) => convertBooleans(row, booleans)));
    });
    onRows(page.length);
  }
}

/** Copies the counter of a table, so that the number of a deleted row is never used again. */
async function copySequence(from: Knex, write: Write, table: TableName): Promise<void> {
  const sequence = `${table}_seq_seq`;
  const highest = hasRowLocks(from)
    ? await cellOf<number>(from(sequence), 'last_value')
    : await cellOf<number>(from('sqlite_sequence').where({ name: table }), 'seq');
  await write(async (tx) => {
    if (hasRowLocks(tx)) {
      await tx.raw('SELECT setval(?, ?)', [sequence, highest ?? 1]);
      return;
    }
    await tx('sqlite_sequence').where({ name: table }).delete();
    await tx('sqlite_sequence').insert({ name: table, seq: highest ?? 0 });
  });
}

/** The tables of the target must be empty. By default it copies all except `meta`. */
export async function copyRows(
  from: Knex,
  write: Write,
  {
    tables = COPIED_TABLES,
    onRows = () => {},
  }: { readonly tables?: readonly TableName[]; readonly onRows?: (rows: number) => void } = {},
): Promise<void> {
  for (const table of tables) await copyTable(from, write, table, onRows);
  for (const table of COPIED_TABLES)
    if (rowOf(table).key[0] === 'seq') await copySequence(from, write, table);
}

/** Copies `meta`, without the notes of a move. */
export async function copyMeta(from: Knex, tx: Knex.Transaction): Promise<void> {
  const rows = (await from('meta').whereNotIn('name', [MOVED, MOVING])) as Row[];
  await tx('meta').whereNot({ name: MOVING }).delete();
  await tx('meta').insert(rows);
}

/**
 * @param tables parents first, as in COPIED.
 * @throws {Error} by PostgreSQL where this role may not truncate
 */
export async function emptyTables(tx: Knex.Transaction, tables: readonly TableName[]): Promise<void> {
  if (hasRowLocks(tx)) await tx.raw(`TRUNCATE ${tables.map(() => '??').join()}`, [...tables]);
  else for (const table of [...tables].reverse()) await tx(table).delete();
}

export const emptyAllTables = (tx: Knex.Transaction): Promise<void> =>
  emptyTables(tx, [...COPIED_TABLES, 'meta']);

const canonicalValue = (value: unknown): unknown => {
  if (typeof value === 'boolean') return Number(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
};

/**
 * Counts the rows and adds up their hashes. A sum does not depend on the order, in which databases sort texts
 * differently.
 */
async function digestOf(from: Knex, table: TableName): Promise<{ rows: number; sum: bigint }> {
  let [rows, sum] = [0, 0n];
  for await (const page of pagesOf<Row>(from<Row>(table), rowOf(table).key, PAGE)) {
    for (const row of page) {
      const cells = Object.keys(row)
        .sort()
        .map((name) => [name, canonicalValue(row[name])]);
      const hash = createHash('sha256').update(JSON.stringify(cells)).digest('hex');
      sum = BigInt.asUintN(256, sum + BigInt(`0x${hash}`));
    }
    rows += page.length;
  }
  return { rows, sum };
}

/** @returns rows by table, up to the first table that differs; `differs` is null where none does */
export async function compareRows(from: Knex, into: Knex, onRows: (rows: number) => void = () => {}) {
  const rows: Record<string, number> = {};
  for (const table of COPIED_TABLES) {
    const [sourceDigest, targetDigest] = [await digestOf(from, table), await digestOf(into, table)];
    if (sourceDigest.rows !== targetDigest.rows || sourceDigest.sum !== targetDigest.sum)
      return { rows, differs: table };
    rows[table] = targetDigest.rows;
    onRows(sourceDigest.rows);
  }
  return { rows, differs: null };
}

/**
 * @returns other connections of gpd to this PostgreSQL, and 0 on SQLite, where the lock of the data directory
 * keeps others out
 */
export async function countOtherConnections({ kind, read }: Database): Promise<number> {
  if (kind === 'sqlite') return 0;
  const connections = read('pg_stat_activity').where({ application_name: 'gpd' });
  return countOf(connections.whereRaw('datname = current_database() AND pid <> pg_backend_pid()'));
}

export async function analyze({ kind, read }: Database): Promise<void> {
  await read.raw(kind === 'sqlite' ? 'PRAGMA optimize' : 'ANALYZE');
}
