import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { errorCode } from './availability.ts';
import { type Connection, execute, onConnection, type Rows, runPrepared } from './sqlite-prepared.ts';

/**
 * A transaction that knex knows nothing of: the object that knex makes for one costs more than the statements of a batch
 * do. It takes statements that are constant texts, and no builder.
 */
export interface SqliteTransaction {
  /** `sql` is one of few: it stays prepared. */
  run(sql: string, bindings: Rows): Promise<Rows>;
  /** Several statements in one step; `bindings` has one for each. */
  runBatch(batch: StatementBatch, bindings: Rows): Promise<Rows>;
}

/** How long a transaction waits for the writer of another process. */
export const BUSY_MS = 5000;
const ASK_AGAIN_MS = 1;

/** Whose last transaction did not wait for the disk. */
const lax = new WeakSet<Connection>();

/**
 * Each transaction sets what it needs, so that none inherits less. SQLite sets it when it prepares the statement, not when it runs it
 * (sqlite.org/pragma.html): a statement that stays prepared would do nothing the second time.
 */
async function setDurability(connection: Connection, awaitsDisk: boolean): Promise<void> {
  if (lax.has(connection) !== awaitsDisk) return;
  await execute(connection, `PRAGMA synchronous=${awaitsDisk ? 'FULL' : 'NORMAL'}`);
  if (awaitsDisk) lax.delete(connection);
  else lax.add(connection);
}

/**
 * SQLite's own wait asks less and less often, at last every 100 ms, and there is no queue: a process that writes again as soon as
 * it has committed would keep the others out. Asking every millisecond finds the pause between two of its transactions.
 */
export async function beginImmediate(connection: Connection, awaitsDisk = true): Promise<void> {
  await setDurability(connection, awaitsDisk);
  const since = performance.now();
  for (;;) {
    try {
      await runPrepared(connection, 'BEGIN IMMEDIATE', []);
      return;
    } catch (error) {
      const isBusy = errorCode(error as Error) === 'SQLITE_BUSY';
      if (!isBusy || performance.now() - since > BUSY_MS) throw error;
    }
    await sleep(ASK_AGAIN_MS);
  }
}

/** After a failure: SQLite may have ended the transaction itself (sqlite.org/lang_transaction.html section 3). */
export async function abandon(connection: Connection): Promise<void> {
  await runPrepared(connection, 'ROLLBACK', []).catch(() => {});
}

async function runOn<T>(connection: Connection, work: (tx: SqliteTransaction) => Promise<T>): Promise<T> {
  let ended = false;
  const step = async (run: () => Promise<Rows>): Promise<Rows> => {
    // Its connection may already be another's.
    if (ended) throw new Error('the transaction has ended');
    return run();
  };
  await beginImmediate(connection);
  try {
    const result = await work({
      run: (sql, bindings) => step(() => runPrepared(connection, sql, bindings)),
      runBatch: (batch, bindings) => step(() => runBatch(connection, batch, bindings)),
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
 * On the connection of `writer`, whose pool of one is the queue for knex's transactions as well.
 * @throws what the driver says: `Database` translates it
 */
export function runSqliteTransaction<T>(
  writer: Knex,
  work: (tx: SqliteTransaction) => Promise<T>,
): Promise<T> {
  return onConnection(writer, async (connection) => {
    await defineBatches(connection);
    return runOn(connection, work);
  });
}

/**
 * Several statements in one step. Each step of a connection is a turn of the thread pool and one of the event loop,
 * which cost more than a small statement does; a trigger runs its statements without them. The trigger and the view that it
 * needs are temporary: they belong to the connection and are in no file (sqlite.org/lang_createtrigger.html).
 */
export interface StatementBatch {
  readonly view: string;
  /** Each takes one parameter and answers no rows. */
  readonly statements: readonly string[];
}

/** Of a connection: false is wanted, and to be defined before its next transaction, as a rollback would undo it inside of one. */
const known = new WeakMap<Connection, Map<StatementBatch, boolean>>();

function define(connection: Connection, { view, statements }: StatementBatch): Promise<void> {
  const columns = statements.map((_, i) => `p${i}`).join(', ');
  const nothing = statements.map(() => 'NULL').join(', ');
  const body = statements.map((sql, i) => `${sql.replace('?', `NEW.p${i}`)};`).join('\n');
  const ddl = `CREATE TEMP VIEW IF NOT EXISTS ${view} (${columns}) AS SELECT ${nothing};
    CREATE TEMP TRIGGER IF NOT EXISTS ${view}_all INSTEAD OF INSERT ON ${view} BEGIN ${body} END;`;
  return execute(connection, ddl);
}

/** Before a transaction: what an earlier one wanted is there from now on. */
async function defineBatches(connection: Connection): Promise<void> {
  for (const [batch, isDefined] of known.get(connection) ?? []) {
    if (isDefined) continue;
    await define(connection, batch);
    known.get(connection)?.set(batch, true);
  }
}

/** In a transaction. One by one the first time, and together from the next transaction on. */
async function runBatch(connection: Connection, batch: StatementBatch, bindings: Rows): Promise<Rows> {
  const { view, statements } = batch;
  const ofConnection = known.get(connection) ?? new Map<StatementBatch, boolean>();
  known.set(connection, ofConnection);
  if (ofConnection.get(batch) === true) {
    const values = statements.map(() => '?').join(', ');
    return runPrepared(connection, `INSERT INTO ${view} VALUES (${values})`, bindings);
  }
  ofConnection.set(batch, false);
  for (const [i, sql] of statements.entries()) await runPrepared(connection, sql, [bindings[i]]);
  return [];
}
