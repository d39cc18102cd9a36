import { driverError, errorCode, Unavailable } from '../lib/errors.ts';
import { parseUrl } from '../lib/text.ts';

/** Tells which failures of a database are worth a retry, and reports those as Unavailable. */

/** A read-only server: a standby after a failover, or a primary set to read-only. */
export const READ_ONLY = '25006';

/**
 * SQLITE_*, Node's network errors and PostgreSQL's classes 08, 53, 55P, 57P and 40, what only reads, and
 * sessions that were idle or at work for too long (PostgreSQL manual, appendix A).
 */
const TRANSIENT =
  /^(SQLITE_(BUSY|LOCKED|FULL|READONLY|CANTOPEN)|E(CONN\w+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN)|08\w{3}|53\w{3}|57P0\d|57014|55P03|40001|40P01|25006|25P0[34])$/;

/**
 * The message of pg's pool, and of SQLite's in sqlite-client.ts; the second comes from a server that does not
 * answer.
 */
export const NO_CONNECTION = 'timeout exceeded when trying to connect';
const GAVE_NONE = new RegExp(`${NO_CONNECTION}|due to connection timeout`);

/** Messages of the pg driver that come without a code. */
const LOST_CONNECTION =
  /Connection (terminated|ended)|Query read timeout|connection error and is not queryable|Client was closed/;

export function isIoError(error: Error): boolean {
  return errorCode(error).startsWith('SQLITE_IOERR');
}

/** The database is busy, full or unreachable. */
function isTransient(error: Error): boolean {
  return (
    TRANSIENT.test(errorCode(error)) || GAVE_NONE.test(error.message) || LOST_CONNECTION.test(error.message)
  );
}

/**
 * The database or its machine answered that it cannot serve now. Restarting this process would not help. A
 * pool that gives no connection is no such answer.
 */
export const isRefusal = (error: unknown): boolean => TRANSIENT.test(errorCode(driverError(error)));

/** In the operator's words, by the driver's code; a driver's message may quote a value. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/^E(NOTFOUND|AI_AGAIN)$/, 'its host name is unknown'],
  [/^ECONNREFUSED$/, 'it refuses the connection'],
  [/^(ECONN\w+|EPIPE|08\w{3})$/, 'the connection was lost'],
  [/^(ETIMEDOUT|57014)$/, 'it did not answer in time'],
  [/^53300$/, 'it has too many connections'],
  [/^53\w{3}$/, 'it is out of memory or disk'],
  [/^57P0\d$/, 'it is starting or shutting down'],
  [/^(25006|SQLITE_READONLY)/, 'it is read-only'],
  [/^SQLITE_(BUSY|LOCKED)/, 'another process has locked it'],
  [/^SQLITE_CANTOPEN/, 'the file cannot be opened: check its owner and mode'],
  [/^SQLITE_FULL/, 'the disk is full'],
  [/^SQLITE_IOERR/, 'its disk failed'],
];

function causeOf(error: Error): string {
  const code = errorCode(error);
  const words = CAUSES.find(([pattern]) => pattern.test(code))?.[1];
  if (words !== undefined) return `${words} (${code})`;
  return GAVE_NONE.test(error.message) ? 'it gave no connection in time' : 'the connection was lost';
}

/** A database as it may be printed: without the user and the password. */
export function locationName(location: string): string {
  const url = parseUrl(location);
  return url ? `${url.protocol}//${url.host}${url.pathname}` : location;
}

/** @param place of the database, where it is known */
export function asUnavailable(thrown: Error, place?: string): Error;
export function asUnavailable(thrown: unknown, place?: string): unknown;
export function asUnavailable(thrown: unknown, place?: string): unknown {
  if (thrown instanceof Unavailable || !(thrown instanceof Error)) return thrown;
  if (!isTransient(thrown) && !isIoError(thrown)) return thrown;
  const which = place === undefined ? 'the database' : `the database ${place}`;
  return new Unavailable(`${which} cannot be used now: ${causeOf(thrown)}`, 1, { cause: thrown });
}

/** A wrong password, name or certificate: a retry would not help. */
export function namedError(error: unknown, place: string): unknown {
  const unavailable = asUnavailable(error, place);
  if (unavailable === error && error instanceof Error)
    error.message = `the database ${place} cannot be used: ${error.message}`;
  return unavailable;
}

/** PostgreSQL rolled this transaction back in favour of another: deadlock or serialisation failure. */
const ROLLED_BACK = /^(40001|40P01)$/;

export const isRolledBack = (error: Error): boolean => ROLLED_BACK.test(errorCode(error));

/**
 * The outcome of a COMMIT: SQLite reports it unless the disk failed; a PostgreSQL that is unreachable reports
 * nothing.
 */
export function isOutcomeUnknown(error: Error): boolean {
  if (isIoError(error)) return true;
  return isTransient(error) && !errorCode(error).startsWith('SQLITE_') && !isRolledBack(error);
}
