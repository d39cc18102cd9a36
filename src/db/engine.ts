import type { Knex } from 'knex';
import type { DatabaseOptions, Kind, TransactionOptions, Work } from './transaction.ts';

/**
 * Everything that gpd needs from a database. Only this folder knows a driver; all other code uses knex and
 * SQL that both databases take.
 */
export interface Database {
  readonly kind: Kind;
  /** Reads; on SQLite a separate pool, so that a read never waits for a commit. */
  readonly read: Knex;
  /** Long reads of whole trails and logs, on a few separate connections so that those of `read` stay free. */
  readonly longRead: Knex;
  /** Reads of one moment. Keep it short: on SQLite nobody can empty the write-ahead log meanwhile. */
  snapshot<T>(work: Work<T>): Promise<T>;
  /**
   * One write transaction: BEGIN IMMEDIATE on SQLite's single writer. Never use `read` inside.
   * @throws {Unavailable} when the database is busy, full or gone and nothing was written
   * @throws {OutcomeUnknown} when it went away in the middle of the COMMIT
   */
  transaction<T>(work: Work<T>, options?: TransactionOptions): Promise<T>;
  /**
   * Milliseconds since the last write that a long deletion must give way to: a transaction here that is not
   * `repeatable`, or any write of another process. Each `repeatable` transaction looks for the latter.
   */
  quietMs(): number;
  /** Copies a long write-ahead log of SQLite into its file, so that no COMMIT has to. */
  copyLog(): Promise<void>;
  /** A transaction without a time limit: a restore. */
  longTransaction<T>(work: Work<T>): Promise<T>;
  /** A transaction by knex itself over a separate connection, without a time limit: changes of the schema. */
  migration<T>(work: Work<T>): Promise<T>;
  /**
   * Runs `work` on a separate connection, outside a transaction and without time limits: PostgreSQL's VACUUM.
   */
  onOwnConnection<T>(work: (connection: Knex) => Promise<T>): Promise<T>;
  /** The process id of a PostgreSQL connection, and the one that the server `reported` at its start. */
  backend(): Promise<{ readonly pid: number; readonly reported: number } | null>;
  /** The SQLite file; null on PostgreSQL. */
  readonly file: string | null;
  /**
   * Empties SQLite's write-ahead log, so that deleted rows are in no file. False while another process or a
   * long read uses it.
   */
  truncateLog(): Promise<boolean>;
  /**
   * Rewrites the whole SQLite file, so that free space keeps nothing of a deleted row. Writes wait meanwhile.
   */
  vacuum(): Promise<void>;
  close(): Promise<void>;
}

/**
 * The part of a database that a read needs: `{ read: database.longRead }` is one that keeps no connection
 * from checks and visits.
 */
export type Reader = Pick<Database, 'read'>;

/**
 * @throws {Error} when an SQLite file is missing and `create` is not set; PostgreSQL is only reached by the
 * first query
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  // Knex takes longer to load than all else of a command, and many commands open no database.
  return /^postgres(ql)?:\/\//.test(options.location)
    ? (await import('./postgres.ts')).openPostgres(options)
    : (await import('./sqlite.ts')).openSqlite(options);
}
