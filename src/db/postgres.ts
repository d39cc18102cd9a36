import { createRequire } from 'node:module';
import knexModule, { type Knex } from 'knex';
import { errorCode } from '../lib/errors.ts';
import { parseUrl } from '../lib/text.ts';
import {
  ACQUIRE_TIMEOUT_MS,
  byKnex,
  closingPool,
  type DatabaseOptions,
  PATIENT,
  READ_ONLY,
  RolledBack,
  runTransaction,
  SILENT,
  snapshotOn,
  type TransactionOptions,
  type Work,
  withAvailability,
} from './availability.ts';

/** PostgreSQL as a Database: pools with time limits, TLS, and answers to servers that went away. */

const { knex } = knexModule;
const require = createRequire(import.meta.url);

interface Connection {
  query(sql: string): Promise<unknown>;
}

interface TransactionInternals {
  readonly readOnly?: boolean;
  begin(connection: Connection): Promise<unknown>;
}

interface ClientInternals {
  connectionSettings: { statement_timeout?: number };
  transaction(...args: unknown[]): TransactionInternals;
  _acquireOnlyConnection(): Promise<Connection>;
  _query(connection: Connection, query: PgQuery): Promise<PgQuery>;
}

interface PgQuery {
  readonly sql: string;
  readonly response: { readonly command: string };
}

type ClientClass = new (config: Knex.Config) => ClientInternals;

const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])?$/;

const ALIAS = /^(prefer|require|verify-ca)$/;

/**
 * A connection that leaves this machine is encrypted and its certificate checked, unless the address says
 * otherwise.
 */
export function withTls(location: string): string {
  const url = parseUrl(location);
  const { searchParams: parameters } = url ?? {};
  // `host` is a socket, or a name that libpq would take as well.
  const isLocal = LOOPBACK.test(url?.hostname ?? '') || parameters?.has('host') === true;
  // The driver treats these as verify-full too, and warns on stderr.
  const isAlias = ALIAS.test(parameters?.get('sslmode') ?? '') && !parameters?.has('uselibpqcompat');
  const hasTlsSetting = parameters?.has('sslmode') || parameters?.has('ssl');
  if (!url || (!isAlias && (isLocal || hasTlsSetting))) return location;
  url.searchParams.set('sslmode', 'verify-full');
  return url.href;
}

/** The pg driver's message when the server has TLS switched off. */
const NO_TLS = /does not support SSL connections/;

/** All statements of the transaction see the same state. */
const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

/** PgBouncer's message for a startup parameter that it does not know; it then closes the connection. */
const REFUSED_PARAMETER = /unsupported startup parameter/;

/**
 * Forces index plans in write transactions. PostgreSQL has no statistics of columns that name a person, and
 * would scan a table or a tenant for a few hundred keys.
 */
const BY_INDEX =
  '; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL random_page_cost = 0.01';

/**
 * Knex's PostgreSQL client, made to work with PgBouncer's transaction pooling. There, session settings are
 * refused at the start or reach other clients, so each BEGIN carries the statement timeout for its
 * transaction. A limit of 0 is for schema changes. A BEGIN that fails ends the transaction before its work:
 * in statement mode the pool refuses it, and statements would commit one by one
 * (https://www.pgbouncer.org/features.html).
 */
function poolableClient(limitMs: number): typeof Knex.Client {
  const Base = require('knex/lib/dialects/postgres/index.js') as ClientClass;
  const setting = `; SET LOCAL statement_timeout = ${limitMs}`;
  const write = `BEGIN${setting}${limitMs === 0 ? '' : BY_INDEX}`;
  class Poolable extends Base {
    override transaction(...args: unknown[]): TransactionInternals {
      const transaction = super.transaction(...args);
      const { repeatable } = args[1] as TransactionOptions;
      const writeBegin = repeatable === true ? `${write}; SET LOCAL synchronous_commit = off` : write;
      const begin = transaction.readOnly === true ? `${SNAPSHOT}${setting}` : writeBegin;
      transaction.begin = (connection) => connection.query(begin);
      return transaction;
    }

    override async _query(connection: Connection, query: PgQuery): Promise<PgQuery> {
      const answered = await super._query(connection, query);
      if (query.sql === 'COMMIT;' && answered.response.command === 'ROLLBACK') throw new RolledBack();
      return answered;
    }

    // Without PgBouncer the limit also applies to the session, so that a read outside a transaction has one.
    override async _acquireOnlyConnection(): Promise<Connection> {
      try {
        return await super._acquireOnlyConnection();
      } catch (error) {
        if (error instanceof Error && NO_TLS.test(error.message))
          throw new Error(
            'PostgreSQL offers no TLS: switch it on there, or add sslmode=disable to GPD_DATABASE_URL',
          );
        const { statement_timeout: limit } = this.connectionSettings;
        if (limit === undefined || !(error instanceof Error) || !REFUSED_PARAMETER.test(error.message))
          throw error;
        const { statement_timeout: _, ...settings } = this.connectionSettings;
        this.connectionSettings = settings;
        return super._acquireOnlyConnection();
      }
    }
  }
  return Poolable as unknown as typeof Knex.Client;
}

interface PostgresConnection {
  __knex__disposed?: unknown;
  readonly connection: { readonly stream: { destroy(): void } };
  query(...args: unknown[]): unknown;
}

/**
 * Keeps useless connections from other callers, as knex's `afterCreate`. pg's query_timeout ends the wait,
 * not the query: the connection would return to the pool with an answer still to come, so it is closed at
 * once. A connection to a read-only server is closed when it is returned: the next may lead to the new
 * primary (https://node-postgres.com/apis/client).
 */
export function closeWhenUseless(
  connection: PostgresConnection,
  done: (error: Error | null, c: unknown) => void,
): void {
  const query = connection.query.bind(connection);
  const watch = (error: Error): void => {
    const hangs = error.message === 'Query read timeout';
    if (hangs || errorCode(error) === READ_ONLY) connection.__knex__disposed = error;
    if (hangs) connection.connection.stream.destroy();
  };
  connection.query = (...args) => {
    const answer = args.at(-1) as ((error: Error | null, result: unknown) => void) | undefined;
    if (typeof answer !== 'function') {
      const promised = query(...args);
      // A BEGIN is sent without a callback.
      if (promised instanceof Promise) promised.catch(watch);
      return promised;
    }
    return query(...args.slice(0, -1), (error: Error | null, result: unknown): void => {
      if (error) watch(error);
      answer(error, result);
    });
  };
  done(null, connection);
}

/** int8 (20) as a JavaScript number: gpd stores milliseconds and counts, all below 2^53. */
async function parseInt8AsNumber(): Promise<void> {
  const { default: pg } = await import('pg');
  pg.types.setTypeParser(20, Number);
}

const STATEMENT_MS = 9000;

function postgresPool(location: string, max: number, limitMs: number, overrides: Knex.Config = {}): Knex {
  // A connection is usable after a timeout of the server, and useless after one of the client.
  const limits = limitMs === 0 ? {} : { statement_timeout: limitMs, query_timeout: limitMs + 1000 };
  return knex({
    client: withAvailability(poolableClient(limitMs)),
    log: SILENT,
    connection: {
      connectionString: withTls(location),
      ...limits,
      application_name: 'gpd',
      // `sendTogether` relies on it: its statements share a round trip.
      pipeline: true,
    } as Knex.PgConnectionConfig & { pipeline: true },
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    pool: { min: 0, max, afterCreate: closeWhenUseless },
    ...overrides,
  });
}

export async function openPostgres({ location, afterClose, ...watch }: DatabaseOptions) {
  await parseInt8AsNumber();
  const pool = postgresPool(location, 10, STATEMENT_MS);
  const longRead = postgresPool(location, 2, STATEMENT_MS, PATIENT);
  const transaction = <T>(work: Work<T>, options?: TransactionOptions): Promise<T> =>
    runTransaction(byKnex(pool, options), work, watch);
  const onOwnConnection = <T>(work: (connection: Knex) => Promise<T>): Promise<T> =>
    closingPool(postgresPool(location, 1, 0), work);
  return {
    kind: 'postgres' as const,
    read: pool,
    longRead,
    snapshot: snapshotOn(pool),
    transaction,
    plainTransaction: <T>(work: Work<T>) => transaction(work),
    quietMs: () => Number.POSITIVE_INFINITY,
    copyLog: async () => {},
    longTransaction: <T>(work: Work<T>) =>
      onOwnConnection((connection) => runTransaction(byKnex(connection), work, watch)),
    onOwnConnection,
    file: null,
    truncateLog: () => Promise.resolve(true),
    vacuum: () => Promise.resolve(),
    async close() {
      try {
        await longRead.destroy();
        await pool.destroy();
      } finally {
        await afterClose?.();
      }
    },
  };
}
