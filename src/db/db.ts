import type { Knex } from 'knex';
import type { DatabaseOptions } from './availability.ts';
import { openPostgres } from './postgres.ts';
import type { Transaction } from './sql.ts';
import { openSqlite } from './sqlite.ts';
import type { TransactionOptions, Work } from './transaction.ts';

/** What gpd asks of a database. Only this folder knows a driver; everything else speaks knex, in SQL that both databases take. */
export interface Database {
  readonly kind: 'sqlite' | 'postgres';
  /** Reads; on SQLite a separate pool, so that a read never waits for a commit. */
  readonly read: Knex;
  /** Reads of whole trails and logs, which take seconds: on a few separate connections, so that those of `read` stay free. */
  readonly longRead: Knex;
  /** Reads of one moment. Keep it short: on SQLite nobody can empty the write-ahead log meanwhile. */
  snapshot<T>(work: Work<T>): Promise<T>;
  /**
   * One write transaction: BEGIN IMMEDIATE on SQLite's single writer. Never use `read` inside.
   * @throws {Unavailable} when the database is busy, full or gone and nothing was written
   * @throws {OutcomeUnknown} when it went away in the middle of the COMMIT
   */
  transaction<T>(work: Work<T>, options?: TransactionOptions): Promise<T>;
  /** The same for work that runs SQL alone (sql.ts), and no builder: what every bundle, grant and limit takes. */
  plainTransaction<T>(work: Work<T, Transaction>): Promise<T>;
  /**
   * Milliseconds since the last write that a long deletion leaves SQLite's writer to: a transaction here that is not `repeatable`, or
   * any of another process, which each `repeatable` one looks for.
   */
  quietMs(): number;
  /** Copies a long write-ahead log of SQLite into its file, so that no COMMIT has to. */
  copyLog(): Promise<void>;
  /** A transaction over separate connections, without a time limit: changes of the schema. */
  longTransaction<T>(work: Work<T>): Promise<T>;
  /** A separate connection outside of a transaction, without time limits: PostgreSQL's VACUUM. */
  alone<T>(work: (connection: Knex) => Promise<T>): Promise<T>;
  /** The SQLite file; null on PostgreSQL. */
  readonly file: string | null;
  /** Empties SQLite's write-ahead log: what was deleted is in no file then. False while another process or a long read holds it. */
  truncateLog(): Promise<boolean>;
  /** Rewrites the whole SQLite file: nothing of a deleted row survives in the free space of a page. Writes wait. */
  vacuum(): Promise<void>;
  close(): Promise<void>;
}

/** @throws when an SQLite file is missing and `create` is not set; PostgreSQL is only reached by the first query */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  return /^postgres(ql)?:\/\//.test(options.location) ? openPostgres(options) : openSqlite(options);
}
