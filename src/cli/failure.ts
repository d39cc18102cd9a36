import { ConfigError } from '../config.ts';
import { driverError, errorCode } from '../db/availability.ts';
import { UnknownSchema } from '../db/migrate.ts';
import { SqliteUnloadable } from '../db/sqlite-client.ts';
import { type ERRORS, OutcomeUnknown, Refusal, Unavailable } from '../lib/errors.ts';
import { BackupFailed } from '../ops/backup-stream.ts';
import { AlreadyInitialised } from '../tenants/installation-files.ts';
import { CommandFailed, conflict, type ExitName, endWith, failed } from './io.ts';

/** Knex puts the statement with its values before the driver's words: ids of people do not belong on a terminal. */
function withoutSql(error: Error): string {
  const byDriver = 'code' in error && typeof error.code === 'string';
  return byDriver
    ? error.message.slice(error.message.lastIndexOf(' - ') + 1).replace(/^- /, '')
    : error.message;
}

/** The driver's messages about a file that this user may not write, or that is not a database. */
const FILE_FAULTS: readonly (readonly [RegExp, ExitName, string])[] = [
  [
    /^SQLITE_READONLY/,
    'notAllowed',
    'cannot write to the database: run gpd as the user that the server runs as',
  ],
  [
    /^SQLITE_(CORRUPT|NOTADB)/,
    'failure',
    'the database is damaged: keep a copy of its directory, then run `gpd restore BACKUP` (`gpd doctor` says more)',
  ],
];

function fileFault(thrown: unknown): CommandFailed | null {
  const code = errorCode(driverError(thrown));
  const [, exit, why] = FILE_FAULTS.find(([pattern]) => pattern.test(code)) ?? [];
  return exit ? new CommandFailed(exit, `${why} (${code})`) : null;
}

/** Exit codes (contract section 9) by the status that HTTP has for a refusal. */
const EXIT_OF_STATUS: Readonly<Record<(typeof ERRORS)[keyof typeof ERRORS][0], ExitName>> = {
  400: 'usage',
  // A command needs no credential: its tenant is gone, or its id names nobody.
  401: 'notFound',
  403: 'notAllowed',
  404: 'notFound',
  405: 'usage',
  408: 'tryAgain',
  409: 'conflict',
  413: 'usage',
  415: 'usage',
  422: 'usage',
  429: 'tryAgain',
  431: 'usage',
  451: 'notAllowed',
  500: 'failure',
  503: 'tryAgain',
};

function refused({ status, message, details }: Refusal): CommandFailed {
  const what = details === undefined ? '' : `: ${details.join('; ')}`;
  return new CommandFailed(EXIT_OF_STATUS[status], `${message.replace(/\.$/, '')}${what}`);
}

export function exitOf(error: unknown): CommandFailed {
  if (error instanceof CommandFailed) return error;
  if (error instanceof Refusal) return refused(error);
  const fault = fileFault(error);
  if (fault) return fault;
  // 78 as well: to start again would not change it, and the unit does not try.
  if (error instanceof ConfigError || error instanceof UnknownSchema || error instanceof SqliteUnloadable)
    return new CommandFailed('badConfig', error.message);
  if (error instanceof OutcomeUnknown) return failed(`${error.message}; check before you repeat it`);
  if (error instanceof Unavailable)
    return new CommandFailed('tryAgain', `${error.message}; try again in a moment`);
  if (error instanceof AlreadyInitialised || (error instanceof BackupFailed && error.conflict))
    return conflict(error.message);
  return failed(error instanceof Error ? withoutSql(error) : String(error));
}

/** For what must end in its place. Everything else is thrown. */
export const fail = (error: unknown): void => endWith(exitOf(error));
