import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Knex } from 'knex';
import { errorCode } from '../lib/errors.ts';
import {
  asUnavailable,
  type ClientInternals,
  type TransactionOptions,
  withAvailability,
} from './availability.ts';

/**
 * The driver of SQLite below knex: transactions that begin as writes, statements that stay prepared, and a
 * plain transaction.
 */

const require = createRequire(import.meta.url);

/** SQLite's native module was not compiled, or was compiled for another machine. */
export class SqliteUnloadable extends Error {
  constructor(reason: string, remedy: string) {
    super(`SQLite's native module cannot be loaded (${reason}): ${remedy}`);
    this.name = 'SqliteUnloadable';
  }
}

/** The package of this very file; what `npm install` was not allowed to run has to be run by hand. */
const PROGRAM = fileURLToPath(new URL('../..', import.meta.url));

function remedy(): string {
  const script = join(PROGRAM, 'bin', 'native.mjs');
  if (!existsSync(script)) return 'install gpd again, in a build for this machine';
  const path = /^[\w./@+-]+$/.test(script) ? script : `'${script.replaceAll("'", "'\\''")}'`;
  return `run \`node ${path}\`; it takes a C++ compiler, make and Python 3`;
}

/** Without this check knex would tell gpd's user to install a driver. @throws {SqliteUnloadable} */
export function requireSqlite(): void {
  try {
    require('sqlite3');
  } catch (error) {
    const [first = ''] = (error as Error).message.split('\n');
    throw new SqliteUnloadable(first.replace(/\. Tried:$/, ''), remedy());
  }
}

interface TransactionInternals {
  begin(connection: Connection): Promise<unknown>;
  commit(connection: Connection, value: unknown): Promise<void>;
  readonly readOnly?: boolean;
  _completed: boolean;
  _resolver(value: unknown): void;
  _rejecter(error: unknown): void;
}

interface SqliteInternals extends ClientInternals {
  transaction(...args: unknown[]): TransactionInternals;
  destroyRawConnection(connection: Connection): Promise<unknown>;
}

type ClientClass = new (config: Knex.Config) => SqliteInternals;

/**
 * Knex's SQLite client, whose write transactions start with BEGIN IMMEDIATE: a deferred BEGIN that turns into
 * a write next to a second process fails at once with SQLITE_BUSY, whatever busy_timeout says
 * (sqlite.org/lang_transaction.html).
 *
 * Knex runs the work even when its own BEGIN failed and counts on each query to notice; statements that
 * bypass knex would commit one by one. A BEGIN that rejects ends the transaction before its work.
 *
 * A COMMIT that failed can leave the transaction open (sqlite.org/lang_transaction.html section 3), and knex
 * gives the connection back as it is: every BEGIN after it would fail.
 * @throws {SqliteUnloadable}
 */
export function immediateSqliteClient(): typeof Knex.Client {
  requireSqlite();
  const Base = require('knex/lib/dialects/sqlite3/index.js') as ClientClass;
  class ImmediateSqlite extends withAvailability(Base) {
    override transaction(...args: unknown[]): TransactionInternals {
      const transaction = super.transaction(...args);
      const { repeatable } = args[1] as TransactionOptions;
      transaction.begin = (connection) =>
        transaction.readOnly === true
          ? runPrepared(connection, 'BEGIN', [])
          : beginImmediate(connection, repeatable !== true);
      transaction.commit = async (connection, value) => {
        transaction._completed = true;
        try {
          await runPrepared(connection, 'COMMIT', []);
        } catch (error) {
          await abandon(connection);
          transaction._rejecter(error);
          return;
        }
        transaction._resolver(value);
      };
      return transaction;
    }

    override async destroyRawConnection(connection: Connection): Promise<unknown> {
      await finalizeAll(connection);
      return super.destroyRawConnection(connection);
    }
  }
  return ImmediateSqlite as unknown as typeof Knex.Client;
}

/**
 * One raw statement, without knex's builder and formatter, which cost more than SQLite does; inside a
 * transaction it runs on the transaction's connection. `sql` is one of few constant texts: it stays prepared,
 * which saves 7 % of an ingest.
 * @throws {Error} when the transaction has ended: its connection may already be another's
 */
export async function runSqlite(knex: Knex, sql: string, bindings: Rows): Promise<Rows> {
  if (knex.isTransaction === true && (knex as Knex.Transaction).isCompleted()) {
    throw new Error('the transaction has ended');
  }
  try {
    return await onConnection(knex, (connection) => runPrepared(connection, sql, bindings));
  } catch (error) {
    throw asUnavailable(error);
  }
}

export type Rows = readonly unknown[];

interface Statement {
  all(bindings: Rows, done: (error: Error | null, rows: unknown[]) => void): void;
  finalize(done: () => void): void;
}

/** A connection of the `sqlite3` package. */
export interface Connection {
  prepare(sql: string, done: (error: Error | null) => void): Statement;
  exec(sql: string, done: (error: Error | null) => void): void;
}

/** The statements of a connection that stay prepared, by their text. */
const prepared = new WeakMap<Connection, Map<string, Statement>>();

/** SQLite refuses to close a connection that has statements. */
async function finalizeAll(connection: Connection): Promise<void> {
  const statements = [...(prepared.get(connection)?.values() ?? [])];
  prepared.delete(connection);
  await Promise.all(
    statements.map((statement) => new Promise<void>((resolve) => statement.finalize(resolve))),
  );
}

function prepare(connection: Connection, sql: string): Promise<Statement> {
  return new Promise((resolve, reject) => {
    const statement = connection.prepare(sql, (error) => (error ? reject(error) : resolve(statement)));
  });
}

async function prepareKept(connection: Connection, sql: string): Promise<Statement> {
  const statement = await prepare(connection, sql);
  const statements = prepared.get(connection) ?? new Map<string, Statement>();
  prepared.set(connection, statements.set(sql, statement));
  return statement;
}

/** Turns a callback of the driver into a promise. */
export const promised = <T>(ask: (done: (error: Error | null, value?: T) => void) => unknown): Promise<T> =>
  new Promise((resolve, reject) => void ask((error, value) => (error ? reject(error) : resolve(value as T))));

async function runPrepared(connection: Connection, sql: string, bindings: Rows): Promise<Rows> {
  const statement = prepared.get(connection)?.get(sql) ?? (await prepareKept(connection, sql));
  return promised<Rows>((done) => statement.all(bindings, done));
}

/** Runs statements that do not stay prepared. */
export const execute = (connection: Pick<Connection, 'exec'>, sql: string): Promise<void> =>
  promised((done) => connection.exec(sql, done));

interface Pool {
  acquireConnection(): Promise<Connection>;
  releaseConnection(connection: Connection): Promise<void>;
}

/** Runs `work` on a connection of knex's pool, or on the transaction's connection. */
export async function onConnection<T>(knex: Knex, work: (connection: Connection) => Promise<T>): Promise<T> {
  const pool = knex.client as unknown as Pool;
  const connection = await pool.acquireConnection();
  try {
    return await work(connection);
  } finally {
    await pool.releaseConnection(connection);
  }
}

/** The longest wait for the writer of another process. */
export const BUSY_MS = 5000;
const ASK_AGAIN_MS = 1;

/** Connections whose last transaction did not wait for the disk. */
const lax = new WeakSet<Connection>();

/**
 * Each transaction sets its durability, so that none inherits less. SQLite applies the pragma when it
 * prepares the statement (sqlite.org/pragma.html): a statement that stays prepared would do nothing the
 * second time.
 */
async function setDurability(connection: Connection, awaitsDisk: boolean): Promise<void> {
  if (lax.has(connection) !== awaitsDisk) return;
  await execute(connection, `PRAGMA synchronous=${awaitsDisk ? 'FULL' : 'NORMAL'}`);
  if (awaitsDisk) lax.delete(connection);
  else lax.add(connection);
}

/**
 * SQLite's own wait polls ever less often, up to every 100 ms, and has no queue: a process that writes
 * continuously would block the others. Polling every millisecond finds the gap between two of its
 * transactions.
 */
async function beginImmediate(connection: Connection, awaitsDisk: boolean): Promise<void> {
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

/** SQLite may have ended the failed transaction itself (sqlite.org/lang_transaction.html section 3). */
async function abandon(connection: Connection): Promise<void> {
  await runPrepared(connection, 'ROLLBACK', []).catch(() => {});
}

/**
 * A transaction outside knex: knex's transaction object costs 7 % of an ingest, most of it as garbage. It
 * takes raw SQL and has no builder.
 */
export interface PlainTransaction {
  readonly client: { readonly dialect: 'sqlite3' };
  run(sql: string, bindings: Rows): Promise<Rows>;
}

/** Runs on the connection of `writer`, whose pool of one is also the queue for knex's transactions. */
export function runPlainTransaction<T>(writer: Knex, work: (tx: PlainTransaction) => Promise<T>): Promise<T> {
  return onConnection(writer, async (connection) => {
    let hasEnded = false;
    async function run(sql: string, bindings: Rows): Promise<Rows> {
      // The connection may already belong to another transaction.
      if (hasEnded) throw new Error('the transaction has ended');
      return runPrepared(connection, sql, bindings);
    }
    await beginImmediate(connection, true);
    try {
      const result = await work({ client: { dialect: 'sqlite3' }, run });
      hasEnded = true;
      await runPrepared(connection, 'COMMIT', []);
      return result;
    } catch (error) {
      hasEnded = true;
      await abandon(connection);
      throw error;
    }
  });
}
