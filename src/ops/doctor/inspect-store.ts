import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { pragma } from '../../db/files.ts';
import { LAST_BACKUP, readMeta } from '../../db/meta-store.ts';
import { cellOf, countOf, rowsOf } from '../../db/sql.ts';
import { MINUTE } from '../../lib/clock.ts';
import { readHead, type StoredEntry } from '../../log/entries.ts';
import { UNFINISHED } from '../../rights/erase/receipts.ts';
import { TABLES } from '../../rights/person-map.ts';

/** What `gpd doctor` and `gpd status` ask a database, by reading alone. */

export async function missingTables(database: Database): Promise<string[]> {
  const missing: string[] = [];
  for (const table of TABLES) if (!(await database.read.schema.hasTable(table))) missing.push(table);
  return missing;
}

export async function databaseVersion(database: Database): Promise<string> {
  const sql =
    database.kind === 'sqlite'
      ? "SELECT 'SQLite ' || sqlite_version() AS version"
      : "SELECT 'PostgreSQL ' || current_setting('server_version') AS version";
  const [row] = rowsOf<{ version: string }>(await database.read.raw(sql));
  return row?.version ?? database.kind;
}

/** Rows that are counted at most. */
const PAGE = 10_000;

const PRAGMAS = ['journal_mode', 'synchronous', 'foreign_keys', 'secure_delete', 'trusted_schema'] as const;

/** On which it depends whether PostgreSQL keeps what it acknowledged, and what of a statement it logs. */
const PARAMETERS = [
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'log_statement',
  'log_min_duration_statement',
  'log_parameter_max_length',
];

/** Pragmas of SQLite or parameters of PostgreSQL, as the database writes them. */
export async function readDatabaseSettings(database: Database): Promise<Record<string, string>> {
  if (database.kind === 'postgres') {
    const rows = await database
      .read('pg_settings')
      .whereIn('name', PARAMETERS)
      .select<{ name: string; setting: string }[]>('name', 'setting');
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
  }
  const values: Record<string, string> = {};
  for (const name of PRAGMAS) values[name] = String(await pragma(database.read, name));
  return values;
}

export async function countOrphans(database: Database): Promise<number> {
  if (database.kind !== 'sqlite') return 0;
  return rowsOf(await database.read.raw('PRAGMA foreign_key_check')).length;
}

/** Null on SQLite, and where the connection does not leave this machine. */
export async function isEncrypted(database: Database): Promise<boolean | null> {
  if (database.kind === 'sqlite') return null;
  const sql =
    'SELECT ssl, inet_server_addr() IS NULL OR inet_server_addr() = inet_client_addr() AS local FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
  const [row] = rowsOf<{ ssl: boolean; local: boolean }>(await database.read.raw(sql));
  return row?.local === true ? null : (row?.ssl ?? null);
}

interface RawConnection {
  readonly processID: number;
  query(sql: string): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

interface RawClient {
  acquireConnection(): Promise<RawConnection>;
  releaseConnection(connection: RawConnection): Promise<void>;
}

const keepsTransactions = (database: Database): Promise<boolean> =>
  database.transaction((tx) => tx.raw('SELECT 1').then(() => true)).catch(() => false);

/** What lies between this process and PostgreSQL; null on SQLite. */
export async function readPooling(database: Database) {
  if (database.kind === 'sqlite') return null;
  const client = database.read.client as RawClient;
  const connection = await client.acquireConnection();
  try {
    const [pid] = (await connection.query('SELECT pg_backend_pid() AS pid')).rows;
    const [limit] = (await connection.query('SHOW statement_timeout')).rows;
    return {
      // A pooler reports its own number, by which a query is cancelled through it.
      /** A pooler answers: the backend is not the one that the connection was made to. */
      pooled: pid?.['pid'] !== connection.processID,
      /** Whether it keeps a transaction together. */
      transactions: await keepsTransactions(database),
      /** The time limit of a statement outside of a transaction, as PostgreSQL writes it; `0` means no limit. */
      readLimit: String(limit?.['statement_timeout']),
    };
  } finally {
    await client.releaseConnection(connection);
  }
}

export async function overdueContests(database: Database, now: number): Promise<number> {
  // By tenant, as the index is.
  const open = database.read('contests').whereIn('kid', (own) => void own.from('tenants').select('kid'));
  return countOf(open.where({ status: 'open' }).where('due_at', '<', now));
}

/** Erasures that began a while ago and are not done. */
export async function incompleteErasures(database: Database, now: number): Promise<number> {
  const late = database
    .read('erasures')
    .whereIn('step', UNFINISHED)
    .where('erased_at', '<', now - 5 * MINUTE);
  return countOf(late);
}

async function timeIn(rows: Knex.QueryBuilder, column: string): Promise<number | null> {
  const at = await cellOf<number>(rows, column);
  return at == null ? null : Number(at);
}

/** When the oldest of the erasures was that wait for a scrub; null: none waits. */
export const unscrubbedSince = ({ read }: Database): Promise<number | null> =>
  timeIn(read('erasures').where({ step: 'scrub' }).orderBy('erased_at'), 'erased_at');

/** At least so many, where there are more than a page of them. */
export async function expiredNonces({ read }: Database, before: number): Promise<number> {
  const some = read('nonces').where('dated_at', '<', before).limit(PAGE).select('kid');
  return countOf(read.from(some.as('some')));
}

/** When the oldest delivery that waits was put there; null: none waits. */
export function oldestWaiting(database: Database, kid: string, webhook: string): Promise<number | null> {
  const waiting = database.read('webhook_outbox').where({ kid, webhook, state: 'waiting' });
  return timeIn(waiting.orderBy('seq'), 'created_at');
}

/** When the last backup was made; null: none was. */
export async function lastBackupAt(database: Database): Promise<number | null> {
  const noted = await readMeta(database, LAST_BACKUP);
  return noted === null ? null : (JSON.parse(noted) as { at: number }).at;
}

/**
 * Head and last entry of a log, and how many entries there are with the page before it; `gpd consent verify` reads all of it. All of one
 * moment: a running server appends meanwhile.
 */
export const readLog = (database: Pick<Database, 'snapshot'>, kid: string) =>
  database.snapshot(async (read) => {
    const head = await readHead({ read }, kid).catch(() => null);
    const newest = read('ledger_entries').where({ kid }).orderBy('seq', 'desc');
    const last = await newest.clone().first<StoredEntry | undefined>('seq', 'hash', 'entry');
    const before = Math.max(0, Number(last?.seq ?? 0) - PAGE);
    const page = read('ledger_entries').where({ kid }).where('seq', '>=', before);
    return {
      head,
      last,
      entries: before + (await countOf(page)),
      headHash: (await cellOf<string>(read('ledger_heads').where({ kid }), 'head_hash')) ?? null,
    };
  });
