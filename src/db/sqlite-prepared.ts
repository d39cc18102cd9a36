import type { Knex } from 'knex';

/** Statements that are prepared once a connection. */

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

/** The texts of the hot path are few and constant: each is prepared once a connection. */
const prepared = new WeakMap<Connection, Map<string, Statement>>();

/** SQLite refuses to close a connection that has statements. */
export async function finalizeAll(connection: Connection): Promise<void> {
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

async function statementFor(connection: Connection, sql: string): Promise<Statement> {
  const known = prepared.get(connection) ?? new Map<string, Statement>();
  prepared.set(connection, known);
  const found = known.get(sql);
  if (found) return found;
  const statement = await prepare(connection, sql);
  known.set(sql, statement);
  return statement;
}

/** What the driver tells by a callback. */
export const told = <T>(ask: (done: (error: Error | null, value?: T) => void) => unknown): Promise<T> =>
  new Promise((resolve, reject) => void ask((error, value) => (error ? reject(error) : resolve(value as T))));

export async function runPrepared(connection: Connection, sql: string, bindings: Rows): Promise<Rows> {
  const statement = await statementFor(connection, sql);
  return told<Rows>((done) => statement.all(bindings, done));
}

/** Statements that are not kept. */
export const execute = (connection: Pick<Connection, 'exec'>, sql: string): Promise<void> =>
  told((done) => connection.exec(sql, done));

interface Pool {
  acquireConnection(): Promise<Connection>;
  releaseConnection(connection: Connection): Promise<void>;
}

/** On a connection out of knex's pool; inside of its transaction on that of the transaction. */
export async function onConnection<T>(knex: Knex, work: (connection: Connection) => Promise<T>): Promise<T> {
  const pool = knex.client as unknown as Pool;
  const connection = await pool.acquireConnection();
  try {
    return await work(connection);
  } finally {
    await pool.releaseConnection(connection);
  }
}
