import { OutcomeUnknown } from '../lib/errors.ts';
import { asUnavailable, driverError, errorCode, isIoError, isTransient } from './availability.ts';
import { RolledBack } from './postgres-client.ts';
import { unreadWrites } from './round-trip.ts';

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
export async function runTransaction<Tx extends object, T>(
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
