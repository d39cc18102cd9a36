import type { Knex } from 'knex';
import type pg from 'pg';
import { errorCode } from '../lib/errors.ts';
import { parseUrl } from '../lib/text.ts';
import { asUnavailable, locationName, namedError, READ_ONLY } from './availability.ts';
import { type Ask, byKnex } from './builder.ts';
import {
  ACQUIRE_TIMEOUT_MS,
  type Begins,
  type Connection,
  type DatabaseOptions,
  PATIENT_MS,
  type Pool,
  RolledBack,
  readerOn,
  runTransaction,
  type TransactionOptions,
  transactOn,
  type Work,
} from './transaction.ts';

/** PostgreSQL as a Database: pools with time limits, TLS, and answers to servers that went away. */

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
 * would scan a table or a tenant for a few hundred keys. A scan that has no index then looks so dear that it
 * would compile the statement first, which took 235 ms for a deletion that found no row.
 */
const BY_INDEX =
  '; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL random_page_cost = 0.01; SET LOCAL jit = off';

/**
 * With PgBouncer's transaction pooling, session settings are refused at the start or reach other clients, so
 * each BEGIN carries the statement timeout for its transaction. A limit of 0 is for schema changes.
 */
function beginSql(begins: Begins, limitMs: number): string {
  const limit = `; SET LOCAL statement_timeout = ${limitMs}`;
  if (begins === 'snapshot') return `${SNAPSHOT}${limit}`;
  const write = `BEGIN${limit}${limitMs === 0 ? '' : BY_INDEX}`;
  return begins === 'repeatable' ? `${write}; SET LOCAL synchronous_commit = off` : write;
}

/** A node on SQLite never loads the driver. */
async function loadDriver(): Promise<typeof pg> {
  const { default: driver } = await import('pg');
  // int8 as a JavaScript number: gpd stores milliseconds and counts, all below 2^53.
  driver.types.setTypeParser(20, Number);
  return driver;
}

const STATEMENT_MS = 9000;
const IDLE_MS = 30_000;
/**
 * The driver stopped waiting, and closes the connection, because the answer would meet the next statement.
 */
const HANGS = 'Query read timeout';

interface PostgresConnection extends Connection {
  readonly client: pg.PoolClient;
  giveBack(): void;
}

function connectionOf(client: pg.PoolClient, place: string, limitMs: number): PostgresConnection {
  let isUseless = false;

  const ask: Ask = (text, values) =>
    new Promise((resolve, reject) => {
      client.query({ text, values: values as unknown[] }, (error, result) => {
        if (!error) return resolve({ rows: result.rows, count: result.rowCount ?? 0, raw: result });
        // The next connection may lead to the new primary.
        isUseless ||= error.message === HANGS || errorCode(error) === READ_ONLY;
        reject(asUnavailable(error, place));
      });
    });

  return {
    ask,
    client,
    /**
     * In statement mode PgBouncer refuses it, and statements would commit one by one
     * (pgbouncer.org/features.html).
     */
    begin: async (begins) => void (await ask(beginSql(begins, limitMs), [], 'few')),
    async commit() {
      const { raw } = await ask('COMMIT', [], 'few');
      if ((raw as pg.QueryResult).command === 'ROLLBACK') throw new RolledBack();
    },
    async rollback() {
      if (!isUseless) await ask('ROLLBACK', [], 'few').catch(() => {});
    },
    /** A connection inside of a transaction is nobody else's. */
    giveBack: () => client.release(isUseless || client.getTransactionStatus() !== 'I'),
  };
}

/** The remedy for a server without TLS; any other error as it is. */
function connectError(error: unknown, place: string): unknown {
  if (error instanceof Error && NO_TLS.test(error.message))
    error.message =
      'PostgreSQL offers no TLS: switch it on there, or add sslmode=disable to GPD_DATABASE_URL';
  return namedError(error, place);
}

interface PoolOptions {
  readonly max: number;
  /** The longest statement; 0 for no limit. */
  readonly limitMs: number;
  readonly waitMs: number;
}

function createPostgresPool(
  driver: typeof pg,
  location: string,
  { max, limitMs, waitMs }: PoolOptions,
): Pool<PostgresConnection> {
  const place = locationName(location);
  function createPool(sessionLimitMs: number): pg.Pool {
    const pool = new driver.Pool({
      connectionString: withTls(location),
      // Without PgBouncer the limit also applies to the session, so that a read outside a transaction has
      // one.
      ...(sessionLimitMs > 0 && { statement_timeout: sessionLimitMs }),
      // A connection is usable after a timeout of the server, and useless after one of the client.
      ...(limitMs > 0 && { query_timeout: limitMs + 1000 }),
      application_name: 'gpd',
      // `sendTogether` relies on it: its statements share a round trip.
      pipeline: true,
      max,
      connectionTimeoutMillis: waitMs,
      idleTimeoutMillis: IDLE_MS,
    });
    // A connection that breaks is not used again; without listeners the process would end.
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  }
  const first = createPool(limitMs);
  let pool = first;

  async function take(): Promise<pg.PoolClient> {
    try {
      return await pool.connect();
    } catch (error) {
      if (!(error instanceof Error) || !REFUSED_PARAMETER.test(error.message)) throw error;
      if (pool === first) pool = createPool(0);
      return pool.connect();
    }
  }

  return {
    async use(work) {
      const client = await take().catch((error: unknown) => {
        throw connectError(error, place);
      });
      const connection = connectionOf(client, place, limitMs);
      try {
        return await work(connection);
      } finally {
        connection.giveBack();
      }
    },
    async close() {
      for (const each of new Set([first, pool])) if (!each.ended) await each.end();
    },
  };
}

export async function openPostgres({ location, afterClose, ...watch }: DatabaseOptions) {
  const driver = await loadDriver();
  const limits = { limitMs: STATEMENT_MS, waitMs: ACQUIRE_TIMEOUT_MS };
  const pool = createPostgresPool(driver, location, { ...limits, max: 10 });
  const longReaders = createPostgresPool(driver, location, { ...limits, max: 2, waitMs: PATIENT_MS });
  const transactionOn = <T>(on: Pool, work: Work<T>, options?: TransactionOptions): Promise<T> => {
    const transact = transactOn('postgres', on, options?.repeatable === true ? 'repeatable' : 'write');
    return runTransaction(transact<T>, work, watch);
  };
  async function withOwnPool<T>(work: (single: Pool<PostgresConnection>) => Promise<T>): Promise<T> {
    const single = createPostgresPool(driver, location, { ...limits, max: 1, limitMs: 0 });
    try {
      return await work(single);
    } finally {
      await single.close();
    }
  }
  return {
    kind: 'postgres' as const,
    read: readerOn('postgres', pool),
    longRead: readerOn('postgres', longReaders),
    snapshot: transactOn('postgres', pool, 'snapshot'),
    transaction: <T>(work: Work<T>, options?: TransactionOptions) => transactionOn(pool, work, options),
    quietMs: () => Number.POSITIVE_INFINITY,
    copyLog: async () => {},
    longTransaction: <T>(work: Work<T>) => withOwnPool((single) => transactionOn(single, work)),
    migration: <T>(work: Work<T>) =>
      withOwnPool((single) =>
        runTransaction<T>((run) => single.use(({ client }) => byKnex('postgres', client, run)), work, watch),
      ),
    onOwnConnection: <T>(work: (connection: Knex) => Promise<T>) =>
      withOwnPool((single) => work(readerOn('postgres', single))),
    file: null,
    backend: () =>
      pool.use(async ({ ask, client }) => {
        const { rows } = await ask('SELECT pg_backend_pid() AS pid', [], 'rows');
        const { pid } = rows[0] as { pid: number };
        return { pid, reported: (client as unknown as { processID: number }).processID };
      }),
    truncateLog: () => Promise.resolve(true),
    vacuum: () => Promise.resolve(),
    async close() {
      try {
        await longReaders.close();
        await pool.close();
      } finally {
        await afterClose?.();
      }
    },
  };
}
