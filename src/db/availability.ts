import type { Knex } from 'knex';
import { driverError, errorCode, OutcomeUnknown, Unavailable } from '../lib/errors.ts';
import { parseUrl } from '../lib/text.ts';

/**
 * Tells which database failures are worth a retry, wraps knex clients so that every statement reports those
 * as Unavailable, and runs a transaction so that its error says whether anything was written.
 */

/** A read-only server: a standby after a failover, or a primary set to read-only. */
export const READ_ONLY = '25006';

/**
 * SQLITE_*, Node's network errors and PostgreSQL's classes 08, 53, 55P, 57P and 40, what only reads, and
 * sessions that were idle or at work for too long (PostgreSQL manual, appendix A).
 */
const TRANSIENT =
  /^(SQLITE_(BUSY|LOCKED|FULL|READONLY|CANTOPEN)|E(CONN\w+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN)|08\w{3}|53\w{3}|57P0\d|57014|55P03|40001|40P01|25006|25P0[34])$/;

/** Messages of the pg driver that come without a code. */
const LOST_CONNECTION =
  /Connection (terminated|ended)|Query read timeout|connection error and is not queryable|Client was closed/;

function isIoError(error: Error): boolean {
  return errorCode(error).startsWith('SQLITE_IOERR');
}

/** The database is busy, full or unreachable. */
function isTransient(error: Error): boolean {
  return (
    TRANSIENT.test(errorCode(error)) ||
    error.name === 'KnexTimeoutError' ||
    LOST_CONNECTION.test(error.message)
  );
}

/**
 * The database or its machine answered that it cannot serve now. Restarting this process would not help. A
 * pool that gives no connection is no such answer.
 */
export const isRefusal = (error: unknown): boolean => TRANSIENT.test(errorCode(driverError(error)));

/** In the operator's words, by the driver's code; a driver's message may quote a value. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/^E(NOTFOUND|AI_AGAIN)$/, 'its host name is unknown'],
  [/^ECONNREFUSED$/, 'it refuses the connection'],
  [/^(ECONN\w+|EPIPE|08\w{3})$/, 'the connection was lost'],
  [/^(ETIMEDOUT|57014)$/, 'it did not answer in time'],
  [/^53300$/, 'it has too many connections'],
  [/^53\w{3}$/, 'it is out of memory or disk'],
  [/^57P0\d$/, 'it is starting or shutting down'],
  [/^(25006|SQLITE_READONLY)/, 'it is read-only'],
  [/^SQLITE_(BUSY|LOCKED)/, 'another process has locked it'],
  [/^SQLITE_CANTOPEN/, 'the file cannot be opened: check its owner and mode'],
  [/^SQLITE_FULL/, 'the disk is full'],
  [/^SQLITE_IOERR/, 'its disk failed'],
];

function causeOf(error: Error): string {
  const code = errorCode(error);
  const words = CAUSES.find(([pattern]) => pattern.test(code))?.[1];
  if (words !== undefined) return `${words} (${code})`;
  return error.name === 'KnexTimeoutError' ? 'it gave no connection in time' : 'the connection was lost';
}

/** A database as it may be printed: without the user and the password. */
export function locationName(location: string): string {
  const url = parseUrl(location);
  return url ? `${url.protocol}//${url.host}${url.pathname}` : location;
}

/** @param place of the database, where it is known */
export function asUnavailable(thrown: unknown, place?: string): unknown {
  if (thrown instanceof Unavailable || !(thrown instanceof Error)) return thrown;
  if (!isTransient(thrown) && !isIoError(thrown)) return thrown;
  const which = place === undefined ? 'the database' : `the database ${place}`;
  return new Unavailable(`${which} cannot be used now: ${causeOf(thrown)}`, 1, { cause: thrown });
}

export interface ClientInternals {
  readonly config: Knex.Config;
  query(connection: unknown, query: unknown): Promise<unknown>;
  acquireConnection(): Promise<unknown>;
}

type ClientClass = new (config: Knex.Config) => ClientInternals;

const placeOf = ({ config }: ClientInternals): string => {
  const { connectionString, filename } = config.connection as Record<'connectionString' | 'filename', string>;
  return locationName(connectionString ?? filename);
};

/** A wrong password, name or certificate: a retry would not help. */
function nameDatabase(error: unknown, place: string): unknown {
  if (error instanceof Error) error.message = `the database ${place} cannot be used: ${error.message}`;
  return error;
}

/**
 * A knex client whose statements throw {@link Unavailable} for each error that {@link isTransient} accepts.
 */
export function withAvailability<Class extends ClientClass>(Base: Class): Class {
  const Plain: ClientClass = Base;
  class Available extends Plain {
    override query(connection: unknown, query: unknown): Promise<unknown> {
      return super.query(connection, query).catch((error: unknown) => {
        throw asUnavailable(error, placeOf(this));
      });
    }

    override acquireConnection(): Promise<unknown> {
      return super.acquireConnection().catch((error: unknown) => {
        const place = placeOf(this);
        const unavailable = asUnavailable(error, place);
        throw unavailable instanceof Unavailable ? unavailable : nameDatabase(error, place);
      });
    }
  }
  return Available as Class;
}

export interface DatabaseOptions {
  /** `postgres://…`, or the file of an SQLite database. */
  readonly location: string;
  /** A wrong path must not fork a ledger: only `gpd init` and `gpd restore` create a file. */
  readonly create?: boolean;
  /** Called when a COMMIT failed with an I/O error and its outcome is unknown: the process has to stop. */
  readonly onUnknownCommit?: (error: Error) => void;
  /** Called after each write transaction, with its error or null. */
  readonly onWrite?: (error: unknown) => void;
  /** Called when the last connection is closed. */
  readonly afterClose?: () => Promise<void>;
}

const nothing = (): void => {};
/** Knex prints to stdout, which carries data, and it throws the same messages anyway. */
export const SILENT: Knex.Logger = { warn: nothing, error: nothing, deprecate: nothing, debug: nothing };
export const ACQUIRE_TIMEOUT_MS = 4000;
/** An export waits until other exports have read their pages. */
export const PATIENT = { acquireConnectionTimeout: 60_000 };

export async function closingPool<T>(pool: Knex, work: (connection: Knex) => Promise<T>): Promise<T> {
  try {
    return await work(pool);
  } finally {
    await pool.destroy();
  }
}

export interface TransactionOptions {
  /**
   * Set for deletions that can be repeated: nobody waits for the disk while rows, a tenant's log or SQLite's
   * writer are locked. A crash of PostgreSQL may lose its last 600 ms, one of SQLite's machine whatever is
   * not on disk, but never a later commit that was kept.
   */
  readonly repeatable?: boolean;
}

/** A statement failed, so PostgreSQL turned the COMMIT into a ROLLBACK, which is no error there. */
export class RolledBack extends Error {}

/** PostgreSQL rolled this transaction back in favour of another: deadlock or serialisation failure. */
const ROLLED_BACK = /^(40001|40P01)$/;

/** SQLite reports the outcome unless the disk failed; a PostgreSQL that is unreachable reports nothing. */
function isOutcomeUnknown(error: Error): boolean {
  const code = errorCode(error);
  if (isIoError(error)) return true;
  return isTransient(error) && !code.startsWith('SQLITE_') && !ROLLED_BACK.test(code);
}

export type Work<T, Tx = Knex.Transaction> = (tx: Tx) => Promise<T>;

/**
 * Runs one transaction. Its error says whether nothing was written or the outcome is unknown.
 * @param transact begins the transaction with its options, runs the work and commits
 */
export async function runTransaction<T, Tx>(
  transact: (work: Work<T, Tx>) => Promise<T>,
  work: Work<T, Tx>,
  watch: Pick<DatabaseOptions, 'onUnknownCommit' | 'onWrite'>,
  retries = 1,
): Promise<T> {
  let finished = false;
  try {
    const result = await transact(async (tx) => {
      const value = await work(tx);
      finished = true;
      return value;
    });
    watch.onWrite?.(null);
    return result;
  } catch (caught) {
    const error = driverError(caught);
    if (ROLLED_BACK.test(errorCode(error)) && retries > 0) {
      return runTransaction(transact, work, watch, retries - 1);
    }
    watch.onWrite?.(error);
    if (finished && !(caught instanceof RolledBack) && isOutcomeUnknown(error)) {
      if (isIoError(error)) watch.onUnknownCommit?.(error);
      // The outcome is unknown, so no caller may report that nothing was written.
      throw new OutcomeUnknown(error);
    }
    throw asUnavailable(caught);
  }
}

/** Knex passes the options to the pool's client, which reads them when it begins. */
export const byKnex =
  <T>(pool: Knex, options?: TransactionOptions) =>
  (work: Work<T>): Promise<T> =>
    pool.transaction(work, options as Knex.TransactionConfig);

const refuse = (error: unknown): never => {
  throw asUnavailable(error);
};

/** Reads one moment of the database: a `readOnly` transaction, which each client begins as a snapshot. */
export const snapshotOn =
  (read: Knex) =>
  <T>(work: Work<T>): Promise<T> =>
    read.transaction(work, { readOnly: true }).catch(refuse);
