import { createRequire } from 'node:module';
import type { Knex } from 'knex';
import { parseUrl } from '../lib/text.ts';

const require = createRequire(import.meta.url);

interface Connection {
  query(sql: string): Promise<unknown>;
}

export interface TransactionOptions {
  /**
   * A crash of PostgreSQL may lose its last 600 ms, one of SQLite's machine what the disk has not got, and nothing that is committed after
   * it and is kept: for deletions that are repeated. Nobody waits for the disk then while rows, a tenant's log or SQLite's writer are locked.
   */
  readonly repeatable?: boolean;
}

/** A statement of it failed, so PostgreSQL took the COMMIT for a ROLLBACK, which is no error there. */
export class RolledBack extends Error {}

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
export function poolableClient(limitMs: number): typeof Knex.Client {
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
