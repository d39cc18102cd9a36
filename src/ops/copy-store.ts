import { createHash } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { MOVED, MOVING } from '../db/meta-store.ts';
import { cellOf, countOf, hasRowLocks, pageBehind, pagesOf } from '../db/sql.ts';
import type { TableName } from '../rights/person-map.ts';
import { rowOf, TABLES } from '../rights/person-map.ts';

/** All rows of one database in another of either kind, table by table: for moves, and for backups of PostgreSQL and their restore. */

type Row = Record<string, Knex.Value>;
/** Runs the work in a transaction of the target. */
type Write = <T>(work: (tx: Knex.Transaction) => Promise<T>) => Promise<T>;

/** `meta` comes last, as without it there is no installation; windows of rate limits end before anybody reads the copy. */
const APART: readonly TableName[] = ['meta', 'rate_counters'];
const depthOf = (table: TableName): number => {
  if (table === 'tenants') return 0;
  return rowOf(table).with === undefined ? 1 : 2;
};

/** Parents before the rows that refer to them. */
export const COPIED: readonly TableName[] = TABLES.filter((table) => !APART.includes(table)).sort(
  (a, b) => depthOf(a) - depthOf(b),
);

/** Of SQLite, which takes an INSERT of several rows as a compound SELECT. */
const PAGE = 500;
/** SQLite takes 32,766 parameters a statement. */
const MAX_CELLS = 30_000;

export async function countRows(from: Knex): Promise<number> {
  let rows = 0;
  for (const table of COPIED) rows += await countOf(from(table));
  return rows;
}

/** SQLite has no booleans: 0 and 1 become what the other database takes. */
function asStored(row: Row, booleans: readonly string[]): Row {
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
      await tx(table).insert(page.map((row) => asStored(row, booleans)));
    });
    onRows(page.length);
  }
}

/** Numbers that a table gave out are not given out again, those of deleted rows neither. */
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

/** Into tables that are empty; everything but `meta`, if nothing else is said. */
export async function copyRows(
  from: Knex,
  write: Write,
  {
    tables = COPIED,
    onRows = () => {},
  }: { readonly tables?: readonly TableName[]; readonly onRows?: (rows: number) => void } = {},
): Promise<void> {
  for (const table of tables) await copyTable(from, write, table, onRows);
  for (const table of COPIED) if (rowOf(table).key[0] === 'seq') await copySequence(from, write, table);
}

/** What makes the copy an installation. */
export async function copyMeta(from: Knex, tx: Knex.Transaction): Promise<void> {
  const rows = (await from('meta').whereNotIn('name', [MOVED, MOVING])) as Row[];
  await tx('meta').whereNot({ name: MOVING }).delete();
  await tx('meta').insert(rows);
}

/** @param tables parents first, as in COPIED. @throws by PostgreSQL where this role may not truncate */
export async function emptyTables(tx: Knex.Transaction, tables: readonly TableName[]): Promise<void> {
  if (hasRowLocks(tx)) await tx.raw(`TRUNCATE ${tables.map(() => '??').join()}`, [...tables]);
  else for (const table of [...tables].reverse()) await tx(table).delete();
}

export const emptyAll = (tx: Knex.Transaction): Promise<void> => emptyTables(tx, [...COPIED, 'meta']);

const canonical = (value: unknown): unknown => {
  if (typeof value === 'boolean') return Number(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
};

/** Number of rows and the sum of their hashes, whatever their order: databases sort texts differently. */
async function digestOf(from: Knex, table: TableName): Promise<{ rows: number; sum: bigint }> {
  let [rows, sum] = [0, 0n];
  for await (const page of pagesOf<Row>(from<Row>(table), rowOf(table).key, PAGE)) {
    for (const row of page) {
      const cells = Object.keys(row)
        .sort()
        .map((name) => [name, canonical(row[name])]);
      const hash = createHash('sha256').update(JSON.stringify(cells)).digest('hex');
      sum = BigInt.asUintN(256, sum + BigInt(`0x${hash}`));
    }
    rows += page.length;
  }
  return { rows, sum };
}

/** Rows by table up to the first one whose rows differ; null: none does. */
export async function compareRows(from: Knex, into: Knex, onRows: (rows: number) => void = () => {}) {
  const rows: Record<string, number> = {};
  for (const table of COPIED) {
    const [ours, theirs] = [await digestOf(from, table), await digestOf(into, table)];
    if (ours.rows !== theirs.rows || ours.sum !== theirs.sum) return { rows, differs: table };
    rows[table] = theirs.rows;
    onRows(ours.rows);
  }
  return { rows, differs: null };
}

/** Other connections of gpd to this PostgreSQL; 0 on SQLite, where the lock of the data directory says it. */
export async function othersConnected({ kind, read }: Database): Promise<number> {
  if (kind === 'sqlite') return 0;
  const others = read('pg_stat_activity').where({ application_name: 'gpd' });
  return countOf(others.whereRaw('datname = current_database() AND pid <> pg_backend_pid()'));
}

export async function analyze({ kind, read }: Database): Promise<void> {
  await read.raw(kind === 'sqlite' ? 'PRAGMA optimize' : 'ANALYZE');
}
