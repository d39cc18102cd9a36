import type { Knex } from 'knex';
import { pragma } from '../../db/database-file.ts';
import type { Database } from '../../db/engine.ts';
import { LAST_BACKUP, readMeta } from '../../db/meta-store.ts';
import { cellOf, countOf, rowsOf } from '../../db/sql.ts';
import { MINUTE } from '../../lib/clock.ts';
import { readHead, type StoredEntry } from '../../log/entries-store.ts';
import { whereRunning } from '../../rights/contests/store.ts';
import { UNFINISHED } from '../../rights/erase/receipts-store.ts';
import { TABLES } from '../../rights/person-map.ts';

/** Read-only queries of `gpd doctor` and `gpd status` about the database itself. */

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

/** Counting stops here: the checks need no exact number. */
const PAGE = 10_000;

const PRAGMAS = ['journal_mode', 'synchronous', 'foreign_keys', 'secure_delete', 'trusted_schema'] as const;

/** Parameters that decide whether PostgreSQL keeps acknowledged writes, and what it logs of a statement. */
const PARAMETERS = [
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'log_statement',
  'log_min_duration_statement',
  'log_parameter_max_length',
];

/** @returns pragmas of SQLite or parameters of PostgreSQL, as the database writes them */
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

/** @returns null on SQLite, and where the connection does not leave this machine */
export async function isEncrypted(database: Database): Promise<boolean | null> {
  if (database.kind === 'sqlite') return null;
  const sql =
    'SELECT ssl, inet_server_addr() IS NULL OR inet_server_addr() = inet_client_addr() AS local FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
  const [row] = rowsOf<{ ssl: boolean; local: boolean }>(await database.read.raw(sql));
  return row?.local === true ? null : (row?.ssl ?? null);
}

const keepsTransactions = (database: Database): Promise<boolean> =>
  database.transaction((tx) => tx.raw('SELECT 1').then(() => true)).catch(() => false);

/** Finds out whether a pooler is between this process and PostgreSQL. @returns null on SQLite */
export async function readPooling(database: Database) {
  const backend = await database.backend();
  if (backend === null) return null;
  const [limit] = rowsOf<{ statement_timeout: string }>(await database.read.raw('SHOW statement_timeout'));
  return {
    /** A pooler invents the process id that it reports at the start, so the backend has another one. */
    pooled: backend.pid !== backend.reported,
    /** False: the pooler sends the statements of one transaction to different backends. */
    transactions: await keepsTransactions(database),
    /**
     * The time limit of a statement outside of a transaction, as PostgreSQL writes it; `0` means no limit.
     */
    readLimit: String(limit?.statement_timeout),
  };
}

export async function overdueContests(database: Database, now: number): Promise<number> {
  // Filtered by tenant, because the index begins with kid.
  const open = database.read('contests').whereIn('kid', (query) => void query.from('tenants').select('kid'));
  return countOf(whereRunning(open.where({ status: 'open' })).where('due_at', '<', now));
}

/** Younger ones are left out: they may still be running. */
export async function incompleteErasures(database: Database, now: number): Promise<number> {
  const unfinished = database
    .read('erasures')
    .whereIn('state', UNFINISHED)
    .where('erased_at', '<', now - 5 * MINUTE);
  return countOf(unfinished);
}

async function timeIn(rows: Knex.QueryBuilder, column: string): Promise<number | null> {
  const at = await cellOf<number>(rows, column);
  return at == null ? null : Number(at);
}

/** @returns when the oldest erasure was that waits for `gpd erase scrub`, or null */
export const unscrubbedSince = ({ read }: Database): Promise<number | null> =>
  timeIn(read('erasures').where({ state: 'done', files_clean_at: null }).orderBy('erased_at'), 'erased_at');

/** @returns the number of expired nonces, at most a page */
export async function expiredNonces({ read }: Database, before: number): Promise<number> {
  const page = read('nonces').where('dated_at', '<', before).limit(PAGE).select('kid');
  return countOf(read.from(page.as('some')));
}

/** @returns when the oldest waiting delivery was enqueued, or null */
export function oldestWaiting(database: Database, kid: string, webhook: string): Promise<number | null> {
  const waiting = database.read('webhook_outbox').where({ kid, webhook, state: 'waiting' });
  return timeIn(waiting.orderBy('seq'), 'created_at');
}

/** @returns when the last backup was made, or null */
export async function lastBackupAt(database: Database): Promise<number | null> {
  const noted = await readMeta(database, LAST_BACKUP);
  return noted === null ? null : (JSON.parse(noted) as { at: number }).at;
}

/**
 * Reads head and last entry of a log from one snapshot, and counts its entries; only the last page is really
 * counted. `gpd consent verify` reads the whole log.
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
