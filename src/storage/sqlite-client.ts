import { createRequire } from 'node:module';
import type { Knex } from 'knex';

const require = createRequire(import.meta.url);

interface TransactionInternals {
  begin(connection: unknown): Promise<unknown>;
  query(connection: unknown, sql: string): Promise<unknown>;
}

type ClientClass = new (config: Knex.Config) => { transaction(...args: unknown[]): TransactionInternals };

/**
 * Knex's SQLite client, whose transactions start with BEGIN IMMEDIATE: a deferred BEGIN that turns into a write beside
 * a second process fails at once with SQLITE_BUSY, whatever busy_timeout says (sqlite.org/lang_transaction.html).
 */
export function immediateSqliteClient(): typeof Knex.Client {
  const Base = require('knex/lib/dialects/sqlite3/index.js') as ClientClass;
  class ImmediateSqlite extends Base {
    override transaction(...args: unknown[]): TransactionInternals {
      const transaction = super.transaction(...args);
      transaction.begin = (connection) => transaction.query(connection, 'BEGIN IMMEDIATE;');
      return transaction;
    }
  }
  return ImmediateSqlite as unknown as typeof Knex.Client;
}

interface Connection {
  all(sql: string, bindings: readonly unknown[], done: (error: Error | null, rows: unknown[]) => void): void;
}

interface Acquiring {
  acquireConnection(): Promise<Connection>;
  releaseConnection(connection: Connection): Promise<void>;
}

/**
 * One statement past knex's builder and formatter, which cost more than SQLite does on the hot path; inside a
 * transaction it runs on the transaction's connection.
 */
export async function runSqlite(
  knex: Knex,
  sql: string,
  bindings: readonly unknown[],
): Promise<readonly unknown[]> {
  const client = knex.client as unknown as Acquiring;
  const connection = await client.acquireConnection();
  try {
    return await new Promise<readonly unknown[]>((resolve, reject) => {
      connection.all(sql, bindings, (error, rows) => (error ? reject(error) : resolve(rows)));
    });
  } finally {
    await client.releaseConnection(connection);
  }
}
