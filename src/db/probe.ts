import { driverError, errorCode, isRefusal, READ_ONLY } from './availability.ts';
import type { Database } from './db.ts';

/**
 * Whether reader and writer answer: a read, and a transaction that takes the writer and writes nothing. A refusal of the
 * database is an answer: restarting this process would not change it. Does not resolve while a query hangs.
 */
export async function answers(database: Database): Promise<boolean> {
  try {
    await database.read('meta').first('name');
    await database.transaction((tx) => tx('meta').first('name'));
    return true;
  } catch (error) {
    return isRefusal(error);
  }
}

/** @throws {Unavailable} */
export async function ping(database: Database): Promise<void> {
  await database.read.raw('SELECT 1');
}

/** Raises the error of a write, so that the pool drops a read-only connection. */
const AS_A_WRITE = `DO $$ BEGIN
  IF current_setting('transaction_read_only') = 'on' THEN RAISE SQLSTATE '${READ_ONLY}'; END IF;
END $$`;

/** Whether a transaction could write: after a failover the pool may reach a standby. @throws any other error */
export async function isWritable({ kind, read }: Database): Promise<boolean> {
  if (kind === 'sqlite') return true;
  try {
    await read.raw(AS_A_WRITE);
    return true;
  } catch (error) {
    if (errorCode(driverError(error)) === READ_ONLY) return false;
    throw error;
  }
}

/** PostgreSQL's timeline, which changes with each promotion; null: SQLite, a standby, or no permission to read it. */
export async function timelineOf({ kind, read }: Database): Promise<string | null> {
  if (kind === 'sqlite') return null;
  const sql = 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline';
  const { rows } = await read.raw<{ rows: { timeline: string }[] }>(sql).catch(() => ({ rows: [] }));
  return rows[0]?.timeline ?? null;
}

/** Names of the tables of a SQLite file. */
export function tablesOfFile({ read }: Database): Promise<readonly string[]> {
  return read('sqlite_master').where({ type: 'table' }).pluck('name');
}
