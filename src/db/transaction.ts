import type { Knex } from 'knex';
import { OutcomeUnknown } from '../lib/errors.ts';
import { asUnavailable, driverError, errorCode, isIoError, isTransient } from './availability.ts';

export interface TransactionOptions {
  /**
   * A crash of PostgreSQL may lose its last 600 ms, one of SQLite's machine what the disk has not got, and nothing that is committed after
   * it and is kept: for deletions that are repeated. Nobody waits for the disk then while rows, a tenant's log or SQLite's writer are locked.
   */
  readonly repeatable?: boolean;
}

/** A statement of it failed, so PostgreSQL took the COMMIT for a ROLLBACK, which is no error there. */
export class RolledBack extends Error {}

/** PostgreSQL rolled this transaction back for another's sake: deadlock and serialisation failure. */
const ROLLED_BACK = /^(40001|40P01)$/;

/** SQLite answers whether it was done, unless the disk failed; a PostgreSQL that is gone answers nothing. */
function outcomeUnknown(error: Error): boolean {
  const code = errorCode(error);
  if (isIoError(error)) return true;
  return isTransient(error) && !code.startsWith('SQLITE_') && !ROLLED_BACK.test(code);
}

export type Work<T, Tx = Knex.Transaction> = (tx: Tx) => Promise<T>;

/**
 * One transaction, and what its failure says: was nothing written, or does nobody know?
 * @param transact begins it as its options say, works and commits
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
    if (finished && !(caught instanceof RolledBack) && outcomeUnknown(error)) {
      if (isIoError(error)) onUnknownCommit?.(error);
      // Done or not, nobody knows, so nobody may say "not".
      throw new OutcomeUnknown(error);
    }
    throw asUnavailable(caught);
  }
}

/** How knex runs it: the client of the pool reads the options when it begins. */
export const byKnex =
  <T>(pool: Knex, options?: TransactionOptions) =>
  (work: Work<T>): Promise<T> =>
    pool.transaction(work, options as Knex.TransactionConfig);

const refuse = (error: unknown): never => {
  throw asUnavailable(error);
};

/** Reads of one moment: each client begins a `readOnly` transaction as its database takes a snapshot. */
export const snapshotOn =
  (read: Knex) =>
  <T>(work: Work<T>): Promise<T> =>
    read.transaction(work, { readOnly: true }).catch(refuse);
