import type { Knex } from 'knex';
import { Unavailable } from '../lib/errors.ts';

/** Which failures of a database are a time to try again, and clients that say so for every statement. */

/** A read-only server: a standby after a failover, or a primary set to read-only. */
export const READ_ONLY = '25006';

/**
 * SQLITE_*, Node's network errors and PostgreSQL's classes 08, 53, 55P, 57P and 40, what only reads, and sessions that were
 * idle or at work for too long (PostgreSQL manual, appendix A).
 */
const TRANSIENT =
  /^(SQLITE_(BUSY|LOCKED|FULL|CANTOPEN)|E(CONN\w+|PIPE|TIMEDOUT)|08\w{3}|53\w{3}|57P0\d|57014|55P03|40001|40P01|25006|25P0[34])$/;

/** pg's own, which have no code. */
const LOST =
  /Connection (terminated|ended)|Query read timeout|connection error and is not queryable|Client was closed/;

export function errorCode(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

export function isIoError(error: Error): boolean {
  return errorCode(error).startsWith('SQLITE_IOERR');
}

/** The database is busy, full, or gone. */
export function isTransient(error: Error): boolean {
  return TRANSIENT.test(errorCode(error)) || error.name === 'KnexTimeoutError' || LOST.test(error.message);
}

/** What the driver threw, whether it was translated on its way or not. */
export function driverError(thrown: unknown): Error {
  if (thrown instanceof Unavailable && thrown.cause instanceof Error) return thrown.cause;
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/**
 * The database itself said that it cannot now, or its machine did: nothing that a restart of this process would fix. A
 * pool that gives no connection said nothing.
 */
export const isRefusal = (error: unknown): boolean => TRANSIENT.test(errorCode(driverError(error)));

const BUSY = 'the database cannot do this now';

export function asUnavailable(thrown: unknown): unknown {
  if (thrown instanceof Unavailable || !(thrown instanceof Error)) return thrown;
  if (!isTransient(thrown) && !isIoError(thrown)) return thrown;
  const why = errorCode(thrown) === 'SQLITE_FULL' ? 'the disk of the database is full' : BUSY;
  return new Unavailable(why, 1, { cause: thrown });
}

export interface ClientInternals {
  query(connection: unknown, query: unknown): Promise<unknown>;
  acquireConnection(): Promise<unknown>;
}

type ClientClass = new (config: Knex.Config) => ClientInternals;

const refuse = (error: unknown): never => {
  throw asUnavailable(error);
};

/** A knex client whose every statement, read or write, throws {@link Unavailable} for what {@link isTransient}. */
export function withAvailability<Class extends ClientClass>(Base: Class): Class {
  const Plain: ClientClass = Base;
  class Available extends Plain {
    override query(connection: unknown, query: unknown): Promise<unknown> {
      return super.query(connection, query).catch(refuse);
    }

    override acquireConnection(): Promise<unknown> {
      return super.acquireConnection().catch(refuse);
    }
  }
  return Available as Class;
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

/** Reads of one moment: each client begins a `readOnly` transaction as its database takes a snapshot. */
export const snapshotOn =
  (read: Knex) =>
  async <T>(work: (tx: Knex.Transaction) => Promise<T>): Promise<T> =>
    read.transaction(work, { readOnly: true }).catch(refuse);
