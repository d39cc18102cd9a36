import { existsSync } from 'node:fs';
import type { Knex } from 'knex';
import knexModule from 'knex';
import { OutcomeUnknown } from '../lib/errors.ts';
import {
  asUnavailable,
  closeWhenUseless,
  driverError,
  errorCode,
  isIoError,
  isTransient,
  snapshotOn,
  withAvailability,
} from './availability.ts';
import { makeCheckpointer, truncateWal } from './checkpointer.ts';
import { poolableClient, RolledBack, type TransactionOptions, withTls } from './postgres-client.ts';
import type { HotTransaction } from './sql.ts';
import { unreadWrites } from './sql.ts';
import {
  BUSY_MS,
  type Connection,
  immediateSqliteClient,
  runSqlite,
  runSqliteTransaction,
  type SqliteTransaction,
} from './sqlite.ts';

/** The one place that knows a driver. Everything else speaks knex, in SQL that both databases take. */
export interface Database {
  readonly kind: 'sqlite' | 'postgres';
  /** Reads; on SQLite a separate pool, so that a read never waits for a commit. */
  readonly read: Knex;
  /** Reads of whole trails and logs, which take seconds: on a few separate connections, so that those of `read` stay free. */
  readonly longRead: Knex;
  /** Reads of one moment. Keep it short: on SQLite nobody can empty the write-ahead log meanwhile. */
  snapshot<T>(work: (tx: Knex.Transaction) => Promise<T>): Promise<T>;
  /**
   * One write transaction: BEGIN IMMEDIATE on SQLite's single writer. Never use `read` inside.
   * @throws {Unavailable} when the database is busy, full or gone and nothing was written
   * @throws {OutcomeUnknown} when it went away in the middle of the COMMIT
   */
  transaction<T>(work: (tx: Knex.Transaction) => Promise<T>, how?: TransactionOptions): Promise<T>;
  /**
   * Milliseconds since the last write that a long deletion leaves SQLite's writer to: a transaction here that is not `repeatable`, or
   * any of another process, which each `repeatable` one looks for.
   */
  quietMs(): number;
  /** Copies a long write-ahead log of SQLite into its file, so that no COMMIT has to. */
  copyLog(): Promise<void>;
  /** The same for statements of the hot path alone: on SQLite they bypass knex. */
  hotTransaction<T>(work: (tx: HotTransaction) => Promise<T>): Promise<T>;
  /** A transaction over separate connections, without a time limit: changes of the schema. */
  longTransaction<T>(work: (tx: Knex.Transaction) => Promise<T>): Promise<T>;
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

export interface DatabaseOptions {
  /** `postgres://…`, or the file of an SQLite database. */
  readonly location: string;
  /** A wrong path must not fork a ledger: only `gpd init` and `gpd restore` create a file. */
  readonly create?: boolean;
  /** Called when a COMMIT failed with an I/O error and its outcome is unknown: the process has to stop. */
  readonly onUnknownCommit?: (error: Error) => void;
}

const { knex } = knexModule;

const ACQUIRE_TIMEOUT_MS = 4000;
/** An export waits for the pages of others, one after another. */
const PATIENT = { acquireConnectionTimeout: 60_000 };

const nothing = (): void => {};
/** Knex prints to stdout, which is data, what it throws as well. */
const SILENT: Knex.Logger = { warn: nothing, error: nothing, deprecate: nothing, debug: nothing };
const PRAGMAS = [
  // First: the others may have to wait for a second process.
  `PRAGMA busy_timeout=${BUSY_MS}`,
  'PRAGMA journal_mode=WAL',
  'PRAGMA synchronous=FULL',
  'PRAGMA foreign_keys=ON',
  'PRAGMA secure_delete=ON',
  // Pages: a checkpoint that comes less often writes a page that changed often once.
  'PRAGMA wal_autocheckpoint=4000',
  'PRAGMA trusted_schema=OFF',
  // A statement of many rows keeps the pages it may have to take back: else in a temporary file, outside our directory.
  'PRAGMA temp_store=MEMORY',
];

type AfterCreate = (connection: Connection, done: (error: Error | null, c: unknown) => void) => void;

const configuring =
  (pragmas: readonly string[]): AfterCreate =>
  (connection, done) =>
    connection.exec(pragmas.join(';'), (error) => done(error, connection));
const configureSqlite = configuring(PRAGMAS);
/** Before the first page of a new file. On each connection it would be a write. */
const configureNew = configuring(['PRAGMA auto_vacuum=INCREMENTAL', 'PRAGMA journal_mode=WAL']);
/** Whose transactions wait in {@link beginImmediate}; within one nothing is busy. */
const configureWriter = configuring([...PRAGMAS, 'PRAGMA busy_timeout=0']);

const byKnex =
  (writer: Knex, how?: TransactionOptions): Transact<Knex.Transaction> =>
  (work) =>
    writer.transaction(work, how as Knex.TransactionConfig);

/** Short: waiting for the checkpoint delays the writer. */
const CHECKPOINT_BUSY_MS = 250;
const VACUUM_BUSY_MS = 10_000;

async function closingPool<T>(pool: Knex, work: (connection: Knex) => Promise<T>): Promise<T> {
  try {
    return await work(pool);
  } finally {
    await pool.destroy();
  }
}

const oneConnection = (base: Knex.Config, afterCreate: AfterCreate): Knex =>
  knex({ ...base, pool: { afterCreate, min: 1, max: 1 } });

/** A separate connection, so that the writer and the readers are not blocked. */
const withSqlite = <T>(
  base: Knex.Config,
  busyMs: number,
  work: (connection: Knex) => Promise<T>,
): Promise<T> =>
  closingPool(oneConnection(base, configureSqlite), async (own) => {
    await own.raw(`PRAGMA busy_timeout=${busyMs}`);
    return work(own);
  });

async function openSqlite(options: DatabaseOptions): Promise<Database> {
  const base: Knex.Config = {
    client: immediateSqliteClient(),
    connection: { filename: options.location },
    useNullAsDefault: true,
    log: SILENT,
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
  };
  if (!existsSync(options.location)) {
    if (options.create !== true) throw new Error('no database yet: run `gpd init` first');
    await closingPool(oneConnection(base, configureNew), (made) => made.raw('SELECT 1'));
  }
  const pool = { afterCreate: configureSqlite, idleTimeoutMillis: 2_147_483_647 };
  const writer = knex({ ...base, pool: { ...pool, afterCreate: configureWriter, min: 1, max: 1 } });
  const read = knex({ ...base, pool: { ...pool, min: 0, max: 4 } });
  const longRead = knex({ ...base, ...PATIENT, pool: { afterCreate: configureSqlite, min: 0, max: 1 } });
  const checkpointer = makeCheckpointer(() => knex({ ...base, pool: { ...pool, min: 1, max: 1 } }));
  const noting =
    <Tx>(transact: Transact<Tx>): Transact<Tx> =>
    async (work) => {
      const result = await transact(work);
      checkpointer.committed();
      return result;
    };
  const quiet = makeQuiet();
  const transaction: Database['transaction'] = (work, how) =>
    runTransaction(noting(byKnex(writer, how)), quiet.watched(work, how), options.onUnknownCommit);
  const direct = noting<SqliteTransaction>((work) => runSqliteTransaction(writer, work));
  return {
    kind: 'sqlite',
    read,
    longRead,
    snapshot: snapshotOn(read),
    transaction,
    quietMs: quiet.ms,
    copyLog: () => checkpointer.copyLog(),
    hotTransaction(work) {
      quiet.wrote();
      return runTransaction(direct, work, options.onUnknownCommit);
    },
    longTransaction: transaction,
    file: options.location,
    truncateLog: () => withSqlite(base, CHECKPOINT_BUSY_MS, truncateWal),
    alone: (work) => withSqlite(base, VACUUM_BUSY_MS, work),
    vacuum: () =>
      withSqlite(base, VACUUM_BUSY_MS, async (connection) => {
        await connection.raw('VACUUM');
      }),
    close: async () => {
      await checkpointer.close();
      await longRead.destroy();
      await read.destroy();
      await writer.destroy();
    },
  };
}

/** int8 (20) as a JavaScript number: gpd stores milliseconds and counts, all below 2^53. */
async function parseInt8AsNumber(): Promise<void> {
  const { default: pg } = await import('pg');
  pg.types.setTypeParser(20, Number);
}

const STATEMENT_MS = 9000;

function postgresPool(location: string, max: number, limitMs: number, more: Knex.Config = {}): Knex {
  // After a statement that PostgreSQL ends, the connection can be used again; after the client's own limit it cannot.
  const limits = limitMs === 0 ? {} : { statement_timeout: limitMs, query_timeout: limitMs + 1000 };
  return knex({
    client: withAvailability(poolableClient(limitMs)),
    log: SILENT,
    connection: {
      connectionString: withTls(location),
      ...limits,
      application_name: 'gpd',
      // What a transaction asks at once shares a round trip.
      pipeline: true,
    } as Knex.PgConnectionConfig & { pipeline: true },
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    pool: { min: 0, max, afterCreate: closeWhenUseless },
    ...more,
  });
}

async function openPostgres({ location, onUnknownCommit }: DatabaseOptions): Promise<Database> {
  await parseInt8AsNumber();
  const pool = postgresPool(location, 10, STATEMENT_MS);
  const longRead = postgresPool(location, 2, STATEMENT_MS, PATIENT);
  const transaction: Database['transaction'] = (work, how) =>
    runTransaction(byKnex(pool, how), work, onUnknownCommit);
  const alone: Database['alone'] = (work) => closingPool(postgresPool(location, 1, 0), work);
  return {
    kind: 'postgres',
    read: pool,
    longRead,
    snapshot: snapshotOn(pool),
    transaction,
    quietMs: () => Number.POSITIVE_INFINITY,
    copyLog: async () => {},
    hotTransaction: transaction,
    longTransaction: (work) => alone((own) => runTransaction(byKnex(own), work, onUnknownCommit)),
    alone,
    file: null,
    truncateLog: () => Promise.resolve(true),
    vacuum: () => Promise.resolve(),
    close: async () => {
      await longRead.destroy();
      await pool.destroy();
    },
  };
}

/** @throws when an SQLite file is missing and `create` is not set; PostgreSQL is only reached by the first query */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  return /^postgres(ql)?:\/\//.test(options.location) ? openPostgres(options) : openSqlite(options);
}

/** PostgreSQL rolled this transaction back for another's sake: deadlock and serialisation failure. */
const ROLLED_BACK = /^(40001|40P01)$/;

/** SQLite answers whether it was done, unless the disk failed; a PostgreSQL that is gone answers nothing. */
function outcomeUnknown(error: Error): boolean {
  const code = errorCode(error);
  if (isIoError(error)) return true;
  return isTransient(error) && !code.startsWith('SQLITE_') && !ROLLED_BACK.test(code);
}

export type Transact<Tx> = <T>(work: (tx: Tx) => Promise<T>) => Promise<T>;

/** One transaction, and what its failure says: was nothing written, or does nobody know? */
async function runTransaction<Tx extends object, T>(
  transact: Transact<Tx>,
  work: (tx: Tx) => Promise<T>,
  onUnknownCommit: ((error: Error) => void) | undefined,
  retries = 1,
): Promise<T> {
  let finished = false;
  let unread: Promise<unknown> | undefined;
  try {
    const written = await transact(async (tx) => {
      try {
        const result = await work(tx);
        finished = true;
        return result;
      } finally {
        unread = unreadWrites(tx);
      }
    });
    // What the driver could not send was not written, and COMMIT does not know of it.
    await unread;
    return written;
  } catch (caught) {
    const why = await unread?.then(() => undefined, driverError);
    const error = why ?? driverError(caught);
    if (ROLLED_BACK.test(errorCode(error)) && retries > 0) {
      return runTransaction(transact, work, onUnknownCommit, retries - 1);
    }
    if (finished && !(caught instanceof RolledBack) && outcomeUnknown(error)) {
      if (isIoError(error)) onUnknownCommit?.(error);
      // Done or not, nobody knows, so nobody may say "not".
      throw new OutcomeUnknown(error);
    }
    throw asUnavailable(why ?? caught);
  }
}

type Work<T> = (tx: Knex.Transaction) => Promise<T>;

/**
 * When somebody wrote last to a SQLite file, long deletions left out: in this process, or in another one, whose commits
 * `PRAGMA data_version` counts (sqlite.org/pragma.html).
 */
function makeQuiet() {
  let wroteAt = Number.NEGATIVE_INFINITY;
  let version: number | undefined;
  function wrote(): void {
    wroteAt = performance.now();
  }
  async function lookForOthers(tx: Knex.Transaction): Promise<void> {
    const [seen] = (await runSqlite(tx, 'PRAGMA data_version', [])) as { data_version: number }[];
    if (version !== undefined && version !== seen?.data_version) wrote();
    version = seen?.data_version;
  }
  return {
    ms: () => performance.now() - wroteAt,
    wrote,
    /** A deletion that can be repeated looks for others, anything else is one. */
    watched<T>(work: Work<T>, how: TransactionOptions | undefined): Work<T> {
      if (how?.repeatable !== true) {
        wrote();
        return work;
      }
      return async (tx) => {
        await lookForOthers(tx);
        return work(tx);
      };
    },
  };
}
