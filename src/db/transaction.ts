import type { Knex } from 'knex';
import { OutcomeUnknown } from '../lib/errors.ts';
import { asUnavailable, driverError, errorCode, isIoError, isTransient } from './availability.ts';

/** Runs a transaction on either database, and says of each error whether something was written. */

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
  onUnknownCommit: ((error: Error) => void) | undefined,
  retries = 1,
): Promise<T> {
  let finished = false;
  try {
    return await transact(async (tx) => {
      const result = await work(tx);
      finished = true;
      return result;
    });
  } catch (caught) {
    const error = driverError(caught);
    if (ROLLED_BACK.test(errorCode(error)) && retries > 0) {
      return runTransaction(transact, work, onUnknownCommit, retries - 1);
    }
    if (finished && !(caught instanceof RolledBack) && isOutcomeUnknown(error)) {
      if (isIoError(error)) onUnknownCommit?.(error);
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
