import { createRequire } from 'node:module';
import knexModule, { type Knex } from 'knex';
import { parseUrl } from '../lib/text.ts';
import {
  ACQUIRE_TIMEOUT_MS,
  closingPool,
  type DatabaseOptions,
  errorCode,
  PATIENT,
  READ_ONLY,
  SILENT,
  withAvailability,
} from './availability.ts';
import {
  byKnex,
  RolledBack,
  runTransaction,
  snapshotOn,
  type TransactionOptions,
  type Work,
} from './transaction.ts';

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
  _query(connection: Connection, asked: Asked): Promise<Asked>;
}

interface Asked {
  readonly sql: string;
  readonly response: { readonly command: string };
}

type ClientClass = new (config: Knex.Config) => ClientInternals;

const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])?$/;

const ALIAS = /^(prefer|require|verify-ca)$/;

/** A connection that leaves this machine is encrypted and its certificate checked, unless the address says otherwise. */
export function withTls(location: string): string {
  const url = parseUrl(location);
  const { searchParams: given } = url ?? {};
  // `host` is a socket, or a name that libpq would take as well.
  const isLocal = LOOPBACK.test(url?.hostname ?? '') || given?.has('host') === true;
  // The driver reads them as verify-full too, and warns about that on stderr.
  const isAlias = ALIAS.test(given?.get('sslmode') ?? '') && !given?.has('uselibpqcompat');
  const isSaid = given?.has('sslmode') || given?.has('ssl');
  if (!url || (!isAlias && (isLocal || isSaid))) return location;
  url.searchParams.set('sslmode', 'verify-full');
  return url.href;
}

/** pg's words for a server that has TLS switched off. */
const NO_TLS = /does not support SSL connections/;

/** All of its statements see what the first one saw. */
const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

/** PgBouncer's words for a startup parameter that it does not know, which ends the connection. */
const REFUSED_PARAMETER = /unsupported startup parameter/;

/**
 * An index answers what is asked with a write. Of columns that name a person PostgreSQL has no statistics, and would read a whole
 * table, or compare each row of a tenant, for some hundred keys.
 */
const BY_INDEX =
  '; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL random_page_cost = 0.01';

/**
 * Knex's PostgreSQL client, which also gets on with PgBouncer in transaction pooling. There a session is nobody's own:
 * what is set for it is refused at the start or reaches strangers. So the time limit of statements goes into the same
 * message as each BEGIN, for that transaction alone. A limit of 0 is for changes of the schema, which plan as PostgreSQL likes.
 *
 * As on SQLite, a BEGIN that fails ends the transaction before its work: a pool in statement mode refuses it, and
 * statements would commit one by one.
 */
function poolableClient(limitMs: number): typeof Knex.Client {
  const Base = require('knex/lib/dialects/postgres/index.js') as ClientClass;
  const setting = `; SET LOCAL statement_timeout = ${limitMs}`;
  const write = `BEGIN${setting}${limitMs === 0 ? '' : BY_INDEX}`;
  class Poolable extends Base {
    override transaction(...args: unknown[]): TransactionInternals {
      const transaction = super.transaction(...args);
      const { repeatable } = args[1] as TransactionOptions;
      const how = repeatable === true ? `${write}; SET LOCAL synchronous_commit = off` : write;
      const begin = transaction.readOnly === true ? `${SNAPSHOT}${setting}` : how;
      transaction.begin = (connection) => connection.query(begin);
      return transaction;
    }

    override async _query(connection: Connection, asked: Asked): Promise<Asked> {
      const answered = await super._query(connection, asked);
      if (asked.sql === 'COMMIT;' && answered.response.command === 'ROLLBACK') throw new RolledBack();
      return answered;
    }

    // Straight to PostgreSQL the limit is the session's too, so that a read outside of a transaction has one.
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
 * For knex's `afterCreate`: connections that no other caller may get. pg's query_timeout gives the caller up and not the
 * query: the connection would go back into the pool with its answer still to come, or in the middle of a transaction. It is
 * closed at once. One to a server that only reads is closed when it is given back: the next may lead to the new primary.
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
      // As a BEGIN is sent.
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

function postgresPool(location: string, max: number, limitMs: number, more: Knex.Config = {}): Knex {
  // After a statement that PostgreSQL ends, the connection can be used again; after the client's own limit it cannot.
  const limits = limitMs === 0 ? {} : { statement_timeout: limitMs, query_timeout: limitMs + 1000 };
  return knex({
    client: withAvailability(poolableClient(limitMs)),
    log: SILENT,
    connection: {
      connectionString: withTls(location),
      ...limits,
      application_name: 'gpd',
      // What `sendTogether` asks at once shares a round trip.
      pipeline: true,
    } as Knex.PgConnectionConfig & { pipeline: true },
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    pool: { min: 0, max, afterCreate: closeWhenUseless },
    ...more,
  });
}

export async function openPostgres({ location, onUnknownCommit, afterClose }: DatabaseOptions) {
  await parseInt8AsNumber();
  const pool = postgresPool(location, 10, STATEMENT_MS);
  const longRead = postgresPool(location, 2, STATEMENT_MS, PATIENT);
  const transaction = <T>(work: Work<T>, how?: TransactionOptions): Promise<T> =>
    runTransaction(byKnex(pool, how), work, onUnknownCommit);
  const alone = <T>(work: (connection: Knex) => Promise<T>): Promise<T> =>
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
    longTransaction: <T>(work: Work<T>) => alone((own) => runTransaction(byKnex(own), work, onUnknownCommit)),
    alone,
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
