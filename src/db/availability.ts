import type { Knex } from 'knex';
import { Unavailable } from '../lib/errors.ts';
import { parseUrl } from '../lib/text.ts';

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

/** In the operator's words, by the driver's code; a driver's message may quote a value. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, 'it refuses the connection'],
  [/^(ECONN\w+|EPIPE|08\w{3})$/, 'the connection was lost'],
  [/^(ETIMEDOUT|57014)$/, 'it did not answer in time'],
  [/^53300$/, 'it has too many connections'],
  [/^53\w{3}$/, 'it is out of memory or disk'],
  [/^57P0\d$/, 'it is starting or shutting down'],
  [/^25006$/, 'it is read-only'],
  [/^SQLITE_(BUSY|LOCKED)/, 'another process has locked it'],
  [/^SQLITE_CANTOPEN/, 'the file cannot be opened: check its owner and mode'],
  [/^SQLITE_FULL/, 'the disk is full'],
  [/^SQLITE_IOERR/, 'its disk failed'],
];

function causeOf(error: Error): string {
  const code = errorCode(error);
  const words = CAUSES.find(([pattern]) => pattern.test(code))?.[1];
  if (words !== undefined) return `${words} (${code})`;
  return error.name === 'KnexTimeoutError' ? 'it gave no connection in time' : 'the connection was lost';
}

/** A database as it may be printed: without the user and the password. */
export function locationName(location: string): string {
  const url = parseUrl(location);
  return url ? `${url.protocol}//${url.host}${url.pathname}` : location;
}

/** @param place of the database, where it is known */
export function asUnavailable(thrown: unknown, place?: string): unknown {
  if (thrown instanceof Unavailable || !(thrown instanceof Error)) return thrown;
  if (!isTransient(thrown) && !isIoError(thrown)) return thrown;
  const which = place === undefined ? 'the database' : `the database ${place}`;
  return new Unavailable(`${which} cannot be used now: ${causeOf(thrown)}`, 1, { cause: thrown });
}

export interface ClientInternals {
  readonly config: Knex.Config;
  query(connection: unknown, query: unknown): Promise<unknown>;
  acquireConnection(): Promise<unknown>;
}

type ClientClass = new (config: Knex.Config) => ClientInternals;

const refuse = (error: unknown): never => {
  throw asUnavailable(error);
};

const placeOf = ({ config }: ClientInternals): string => {
  const { connectionString, filename } = config.connection as Record<'connectionString' | 'filename', string>;
  return locationName(connectionString ?? filename);
};

/** A password, a name or a certificate that is wrong: trying again would not help. */
function noWayIn(error: unknown, place: string): unknown {
  if (error instanceof Error) error.message = `the database ${place} cannot be used: ${error.message}`;
  return error;
}

/** A knex client whose every statement, read or write, throws {@link Unavailable} for what {@link isTransient}. */
export function withAvailability<Class extends ClientClass>(Base: Class): Class {
  const Plain: ClientClass = Base;
  class Available extends Plain {
    override query(connection: unknown, query: unknown): Promise<unknown> {
      return super.query(connection, query).catch((error: unknown) => {
        throw asUnavailable(error, placeOf(this));
      });
    }

    override acquireConnection(): Promise<unknown> {
      return super.acquireConnection().catch((error: unknown) => {
        const place = placeOf(this);
        const away = asUnavailable(error, place);
        throw away instanceof Unavailable ? away : noWayIn(error, place);
      });
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
