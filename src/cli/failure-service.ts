import { ConfigError } from '../config.ts';
import { ForeignObjects } from '../db/foreign-objects.ts';
import { UnknownSchema } from '../db/migrate.ts';
import { LinkFound } from '../db/own-files.ts';
import { SqliteUnloadable } from '../db/sqlite-client.ts';
import { driverError, type ERRORS, errorCode, OutcomeUnknown, Refusal, Unavailable } from '../lib/errors.ts';
import { BackupFailed } from '../ops/backup-stream-files.ts';
import { AlreadyInitialised } from '../tenants/installation-files.ts';
import { CommandFailed, conflict, type ExitName, endWith, failed } from './io-service.ts';

/** Maps every error to an exit code and one sentence, for the end of a command (contract section 9). */

/**
 * Knex puts the statement with its values before the driver's message: ids of people do not belong on a
 * terminal.
 */
function withoutSql(error: Error): string {
  const byDriver = 'code' in error && typeof error.code === 'string';
  return byDriver
    ? error.message.slice(error.message.lastIndexOf(' - ') + 1).replace(/^- /, '')
    : error.message;
}

/** Codes of the SQLite driver for a file that this user may not write, or that is not a database. */
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

/** A start that is repeated would not help: `gpd serve` ends with 78. */
export const isDamaged = (thrown: unknown): boolean =>
  /^SQLITE_(CORRUPT|NOTADB)/.test(errorCode(driverError(thrown)));

function fileFailure(thrown: unknown): CommandFailed | null {
  const code = errorCode(driverError(thrown));
  const [, exit, reason] = FILE_FAULTS.find(([pattern]) => pattern.test(code)) ?? [];
  return exit ? new CommandFailed(exit, `${reason} (${code})`) : null;
}

/** Exit codes (contract section 9) by the status that HTTP has for a refusal. */
const EXIT_OF_STATUS: Readonly<Record<(typeof ERRORS)[keyof typeof ERRORS][0], ExitName>> = {
  400: 'usage',
  // A command needs no credential: its tenant was removed, or its id names nobody.
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

function failureOfRefusal({ status, message, details }: Refusal): CommandFailed {
  const detailText = details === undefined ? '' : `: ${details.join('; ')}`;
  return new CommandFailed(EXIT_OF_STATUS[status], `${message.replace(/\.$/, '')}${detailText}`);
}

const BAD_CONFIG = [LinkFound, ConfigError, UnknownSchema, ForeignObjects, SqliteUnloadable];

export function commandFailureOf(error: unknown): CommandFailed {
  if (error instanceof CommandFailed) return error;
  if (error instanceof Refusal) return failureOfRefusal(error);
  const fault = fileFailure(error);
  if (fault) return fault;
  // Exit code 78 stops systemd from starting the unit again, which would not help here.
  if (BAD_CONFIG.some((type) => error instanceof type) && error instanceof Error)
    return new CommandFailed('badConfig', error.message);
  if (error instanceof OutcomeUnknown) return failed(`${error.message}; check before you repeat it`);
  if (error instanceof Unavailable)
    return new CommandFailed('tryAgain', `${error.message}; try again in a moment`);
  if (error instanceof AlreadyInitialised || (error instanceof BackupFailed && error.conflict))
    return conflict(error.message);
  return failed(error instanceof Error ? withoutSql(error) : String(error));
}

/** Prints the error and sets the exit code, where a caller has to clean up and cannot throw it. */
export const endWithError = (error: unknown): void => endWith(commandFailureOf(error));
