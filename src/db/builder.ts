import knexModule, { type Knex } from 'knex';
import { memoised } from '../lib/collections.ts';

/**
 * Knex builds queries, and a connection of this folder runs them. A query of knex that is awaited asks its
 * client for a runner; the clients here have no pool, and a runner that takes the finished SQL to a
 * connection (ADR 0098). If a release of knex asked anything else, each query would fail, because such a
 * client gives no connection.
 */

const { knex } = knexModule;

/** The answer to one statement. */
export interface DriverAnswer {
  readonly rows: readonly unknown[];
  /** The number of changed rows, where it was wanted. */
  readonly count: number;
  /** The answer to raw SQL: rows on SQLite, the driver's result on PostgreSQL. */
  readonly raw: unknown;
}

/**
 * Runs one statement.
 * @param sql with the placeholders of its database
 * @param wants `few` are rows of a statement that has one of few texts, which SQLite keeps prepared
 */
export type Ask = (
  sql: string,
  bindings: readonly unknown[],
  wants: 'rows' | 'few' | 'count',
) => Promise<DriverAnswer>;

export interface QueryClient extends Knex.Client {
  ask: Ask;
}

type Built = Pick<Knex.QueryBuilder, 'toSQL'>;
type Compiled = Omit<Knex.Sql, 'toNative'> & {
  /** Set for a statement that knex itself needs to read, such as the existence of a table. */
  readonly output?: (answer: unknown) => unknown;
  readonly pluck?: string;
  readonly returning?: unknown;
};

async function runCompiled(client: QueryClient, compiled: Compiled): Promise<unknown> {
  const { method, output, pluck, returning } = compiled;
  const changes = method === 'insert' || method === 'update' || method === 'del';
  const wants = changes && !returning ? 'count' : 'rows';
  const sql = client.positionBindings(compiled.sql) as string;
  const { rows, count, raw } = await client.ask(sql, compiled.bindings ?? [], wants);
  if (output) return output(raw);
  if (wants === 'count') return count;
  if (method === 'first') return rows[0];
  if (pluck !== undefined) return rows.map((row) => (row as Readonly<Record<string, unknown>>)[pluck]);
  return method === 'raw' || method === undefined ? raw : rows;
}

/** A change of the schema is a list of statements. */
async function runBuilt(client: QueryClient, built: Built): Promise<unknown> {
  const compiled = built.toSQL() as unknown as Compiled | readonly Compiled[];
  if (!Array.isArray(compiled)) return runCompiled(client, compiled as Compiled);
  let last: unknown;
  for (const statement of compiled) last = await runCompiled(client, statement);
  return last;
}

const CLIENTS = { sqlite: 'sqlite3', postgres: 'pg' } as const;

const clientOf = memoised((kind: keyof typeof CLIENTS): QueryClient => {
  // A column without a value gets its default on PostgreSQL; SQLite has no such word in a list of values.
  const options = { client: CLIENTS[kind], useNullAsDefault: kind === 'sqlite' };
  const client = Object.create(knex(options).client) as QueryClient;
  client.runner = function (this: QueryClient, built: Built) {
    return { run: () => runBuilt(this, built) };
  };
  return client;
});

/**
 * The function that stores call with a table. Of knex's members it has `raw`, `from`, `schema` and `client`.
 * @param ask runs what it builds: on the connection of a transaction, or on any of a pool
 */
export function createBuilder(kind: keyof typeof CLIENTS, ask: Ask): Knex.Transaction {
  const client = Object.create(clientOf(kind)) as QueryClient;
  client.ask = ask;
  const from = (table: string): Knex.QueryBuilder => client.queryBuilder().from(table);
  const raw = (...sql: unknown[]): Knex.Raw => client.raw(...sql) as Knex.Raw;
  const builder = Object.assign(from, { client, from, raw });
  Object.defineProperty(builder, 'schema', { get: () => client.schemaBuilder() });
  return builder as unknown as Knex.Transaction;
}

const nothing = (): void => {};
/** Knex prints to stdout, which carries data, and it throws the same messages anyway. */
const SILENT: Knex.Logger = { warn: nothing, error: nothing, deprecate: nothing, debug: nothing };

/** A transaction by knex itself on this connection of a driver: its migrations need one. */
export async function byKnex<T>(
  kind: keyof typeof CLIENTS,
  connection: object,
  work: (tx: Knex.Transaction) => Promise<T>,
): Promise<T> {
  const connectionPool = new knexModule.KnexPool({
    create: () => Promise.resolve(connection),
    destroy: () => Promise.resolve(),
    min: 0,
    max: 1,
  });
  const options = { useNullAsDefault: kind === 'sqlite', log: SILENT, connectionPool };
  try {
    return await knex({ client: CLIENTS[kind], ...options }).transaction(work);
  } finally {
    await connectionPool.destroy();
  }
}
