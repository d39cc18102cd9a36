import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Knex } from 'knex';
import { asUnavailable, type ClientInternals, withAvailability } from './availability.ts';
import type { TransactionOptions } from './postgres-client.ts';
import { type Connection, finalizeAll, onConnection, type Rows, runPrepared } from './sqlite-prepared.ts';
import { abandon, beginImmediate } from './sqlite-transaction.ts';

const require = createRequire(import.meta.url);

/** The native module of SQLite was not compiled, or for another machine. */
export class SqliteUnloadable extends Error {
  constructor(why: string, remedy: string) {
    super(`SQLite's native module cannot be loaded (${why}): ${remedy}`);
    this.name = 'SqliteUnloadable';
  }
}

/** What `npm install` was not allowed to run, and has to be run by hand. */
function remedy(): string {
  let folder: string;
  try {
    folder = dirname(require.resolve('sqlite3/package.json'));
  } catch {
    return 'install gpd again, with its packages';
  }
  if (!existsSync(join(folder, 'binding.gyp'))) return 'install gpd again, in a build for this machine';
  const owner = dirname(dirname(folder));
  const place = /^[\w./@+-]+$/.test(owner) ? owner : `'${owner.replaceAll("'", "'\\''")}'`;
  return `run \`npm --prefix ${place} rebuild sqlite3 --ignore-scripts=false\`; it takes a C++ compiler, make and Python 3`;
}

/** Knex would say what its own users have to install. @throws {SqliteUnloadable} */
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
 * Knex's SQLite client, whose write transactions start with BEGIN IMMEDIATE: a deferred BEGIN that turns into a write next to
 * a second process fails at once with SQLITE_BUSY, whatever busy_timeout says (sqlite.org/lang_transaction.html).
 *
 * Knex runs the work even when its own BEGIN failed and counts on each query to notice; statements that bypass knex
 * would commit one by one. A BEGIN that rejects ends the transaction before its work.
 *
 * A COMMIT that failed can leave the transaction open (sqlite.org/lang_transaction.html section 3), and knex gives the
 * connection back as it is: every BEGIN after it would fail.
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
 * One raw statement, without knex's builder and formatter, which cost more than SQLite does on the hot path; inside a
 * transaction it runs on the transaction's connection. `sql` is one of few constant texts: it stays prepared.
 * @throws when the transaction has ended: its connection may already be another's
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
