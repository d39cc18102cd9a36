import type { Knex } from 'knex';
import { driverError, OutcomeUnknown } from '../lib/errors.ts';
import { asUnavailable, isIoError, isOutcomeUnknown, isRolledBack } from './availability.ts';
import { type Ask, createBuilder } from './builder.ts';

/** Connections, and transactions on them, which are the same on both databases. */

export type Kind = 'sqlite' | 'postgres';

/**
 * A `snapshot` only reads, and sees one moment. A `repeatable` transaction commits without waiting for the
 * disk, so that nobody waits long for what it locks. A crash may lose it (PostgreSQL: the last 600 ms;
 * SQLite: what the machine had not written), and then every later commit too.
 */
export type Begins = 'snapshot' | 'write' | 'repeatable';

/** A connection while one caller has it. */
export interface Connection {
  readonly ask: Ask;
  begin(begins: Begins): Promise<void>;
  commit(): Promise<void>;
  /** Never rejects, and may come after a BEGIN that failed. */
  rollback(): Promise<void>;
}

/** Connections that are opened when needed, and callers that wait for one in the order in which they came. */
export interface Pool<Pooled extends Connection = Connection> {
  /** @throws {Unavailable} when no connection gets free in time @throws {Error} when none can be opened */
  use<T>(work: (connection: Pooled) => Promise<T>): Promise<T>;
  /** Waits for the connections in use. */
  close(): Promise<void>;
}

export const ACQUIRE_TIMEOUT_MS = 4000;
/** An export waits until other exports have read their pages. */
export const PATIENT_MS = 60_000;

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

export interface TransactionOptions {
  /** Set for deletions that can be repeated. */
  readonly repeatable?: boolean;
}

export type Work<T> = (tx: Knex.Transaction) => Promise<T>;

/** Each statement runs on any connection of the pool. */
export const readerOn = (kind: Kind, pool: Pool): Knex =>
  createBuilder(kind, (...statement) => pool.use(({ ask }) => ask(...statement)));

async function inTransaction<T>(
  kind: Kind,
  connection: Connection,
  begins: Begins,
  work: Work<T>,
): Promise<T> {
  let hasEnded = false;
  const ask: Ask = (...statement) =>
    // The connection may already belong to another transaction.
    hasEnded ? Promise.reject(new Error('the transaction has ended')) : connection.ask(...statement);
  try {
    await connection.begin(begins);
    const result = await work(createBuilder(kind, ask));
    hasEnded = true;
    await connection.commit();
    return result;
  } catch (error) {
    hasEnded = true;
    await connection.rollback();
    throw error;
  }
}

/** Begins, works and commits, or takes back what the work did. */
export const transactOn =
  (kind: Kind, pool: Pool, begins: Begins) =>
  <T>(work: Work<T>): Promise<T> =>
    pool.use((connection) => inTransaction(kind, connection, begins, work));

/** A statement failed, so PostgreSQL turned the COMMIT into a ROLLBACK, which is no error there. */
export class RolledBack extends Error {}

/**
 * Runs one transaction that writes. Its error says whether nothing was written or the outcome is unknown.
 * @param transact begins the transaction, runs the work and commits
 */
export async function runTransaction<T>(
  transact: (work: Work<T>) => Promise<T>,
  work: Work<T>,
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
    if (isRolledBack(error) && retries > 0) return runTransaction(transact, work, watch, retries - 1);
    watch.onWrite?.(error);
    if (finished && !(caught instanceof RolledBack) && isOutcomeUnknown(error)) {
      if (isIoError(error)) watch.onUnknownCommit?.(error);
      // The outcome is unknown, so no caller may report that nothing was written.
      throw new OutcomeUnknown(error);
    }
    throw asUnavailable(caught);
  }
}
