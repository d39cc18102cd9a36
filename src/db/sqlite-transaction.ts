import type { Knex } from 'knex';
import { type Connection, onConnection, type Rows, runPrepared } from './sqlite-prepared.ts';
import { defineTogether, runTogether, type Together } from './sqlite-together.ts';

/**
 * A transaction that knex knows nothing of: the object that knex makes for one costs more than the statements of a batch
 * do. It takes statements that are constant texts, and no builder.
 */
export interface SqliteTransaction {
  /** `sql` is one of few: it stays prepared. */
  run(sql: string, bindings: Rows): Promise<Rows>;
  /** Several statements in one step; `bindings` has one for each. */
  runTogether(together: Together, bindings: Rows): Promise<Rows>;
}

/** After a failure: SQLite may have ended the transaction by itself (sqlite.org/lang_transaction.html section 3). */
export async function abandon(connection: Connection): Promise<void> {
  try {
    await runPrepared(connection, 'ROLLBACK', []);
  } catch {
    // It had.
  }
}

async function runOn<T>(connection: Connection, work: (tx: SqliteTransaction) => Promise<T>): Promise<T> {
  let ended = false;
  const step = async (run: () => Promise<Rows>): Promise<Rows> => {
    // Its connection may already be another's.
    if (ended) throw new Error('the transaction has ended');
    return run();
  };
  await runPrepared(connection, 'BEGIN IMMEDIATE', []);
  try {
    const result = await work({
      run: (sql, bindings) => step(() => runPrepared(connection, sql, bindings)),
      runTogether: (together, bindings) => step(() => runTogether(connection, together, bindings)),
    });
    ended = true;
    await runPrepared(connection, 'COMMIT', []);
    return result;
  } catch (error) {
    ended = true;
    await abandon(connection);
    throw error;
  }
}

/**
 * On the connection of `writer`, whose pool of one is the queue that transactions of knex stand in as well.
 * @throws what the driver says: `Database` translates it
 */
export function runSqliteTransaction<T>(
  writer: Knex,
  work: (tx: SqliteTransaction) => Promise<T>,
): Promise<T> {
  return onConnection(writer, async (connection) => {
    await defineTogether(connection);
    return runOn(connection, work);
  });
}
