import { readFileSync } from 'node:fs';
import type { ZodType } from 'zod';
import { type Config, ConfigError, loadConfig } from '../config.ts';
import { driverError, errorCode } from '../db/availability.ts';
import type { Database } from '../db/db.ts';
import { UnknownSchema } from '../db/migrate.ts';
import { SqliteUnloadable } from '../db/sqlite-client.ts';
import { type ERRORS, OutcomeUnknown, Refusal, Unavailable } from '../lib/errors.ts';
import { tryOr } from '../lib/functions.ts';
import { BackupFailed } from '../ops/backup-stream.ts';
import { kidSchema } from '../schema/bundle.ts';
import { explainIssue } from '../schema/explain-issue.ts';
import { type EraseTargetBody, eraseTargetSchema } from '../schema/rights.ts';
import type { SettingName } from '../schema/settings.ts';
import { AlreadyInitialised } from '../tenants/installation-files.ts';
import type { StoredTenant } from '../tenants/tenant-store.ts';
import { makeTenantStore } from '../tenants/tenant-store.ts';
import { io, onTerminal } from './io.ts';
import {
  CommandFailed,
  conflict,
  EXIT,
  type ExitName,
  failed,
  misused,
  notFound,
  printable,
  say,
} from './output.ts';

export function configFor(flags: Partial<Record<SettingName, unknown>> = {}): Config {
  const { env, asked } = io();
  return loadConfig({ environment: env, flags, configFile: asked.config });
}

/** @throws {CommandFailed} `usage`, which begins with `what` */
export function checked<T>(schema: ZodType<T>, value: unknown, what: string): T {
  const { data, error } = schema.safeParse(value, { error: explainIssue });
  if (error) throw misused(`${what}${error.issues[0]?.message}`);
  return data;
}

/** The same, and where in the value it is wrong. */
export function checkedPart<T>(schema: ZodType<T>, value: unknown, what = ''): T {
  const { data, error } = schema.safeParse(value, { error: explainIssue });
  if (error) throw misused(`${what}${error.issues[0]?.path.join('.')}: ${error.issues[0]?.message}`);
  return data;
}

/** A whole number, as an option or an operand gives it. @throws {CommandFailed} `usage` with `otherwise` */
export function checkWhole(text: string | number, [min, max]: readonly [number, number], otherwise: string) {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < min || number > max) throw misused(otherwise);
  return number;
}

/** The one of these words that it is. @throws {CommandFailed} `usage` with `otherwise` */
export function checkOneOf<Word extends string>(words: readonly Word[], text: unknown, otherwise: string) {
  const found = words.find((word) => word === text);
  if (found === undefined) throw misused(otherwise);
  return found;
}

export const checkKid = (text: string): string => checked(kidSchema, text, `${JSON.stringify(text)}: `);

/** The JSON that a file holds. */
export function readJsonFile(file: string): unknown {
  const value = tryOr(() => JSON.parse(readFileSync(file, 'utf8')) as unknown, undefined);
  if (value === undefined) throw misused(`${file} cannot be read as JSON`);
  return value;
}

export function noSuchTenant(kid: string): CommandFailed {
  return notFound(`no tenant ${kid}; \`gpd tenants list\` shows them`);
}

/** Where a list is asked for one tenant, an empty answer must not stand for a name that is not there. */
export async function requireTenant(database: Database, kid: string): Promise<StoredTenant> {
  const tenant = await makeTenantStore(database).get(kid);
  if (tenant) return tenant;
  throw noSuchTenant(kid);
}

/** Options of a command: those with a text, and those without. */
export type Flags<Text extends string, Bare extends string = never> = { readonly [Name in Text]?: string } & {
  readonly [Name in Bare]?: boolean;
};

export type DestructiveFlags = Flags<never, 'yes' | 'dryRun'>;

/** What was asked for by name, and must not wait for a second word in a script, asks on a terminal only. */
export async function confirmOnTerminal(options: DestructiveFlags, what: string): Promise<void> {
  if (onTerminal()) await confirm(options, what);
}

/** Destructive commands ask on a terminal and need --yes without one; nothing prompts without a TTY, or for --dry-run. */
export async function confirm(options: DestructiveFlags, what: string): Promise<void> {
  if (options.yes === true || options.dryRun === true) return;
  if (!onTerminal()) throw misused(`${what}: repeat with --yes, or check first with --dry-run`);
  const { createInterface } = await import('node:readline/promises');
  const prompt = createInterface({ input: io().stdin, output: io().stderr });
  const answer = await prompt.question(`${printable(what)}. Type yes to continue: `);
  prompt.close();
  if (answer.trim() !== 'yes') throw failed('nothing was changed');
}

export type TargetOptions = Flags<'visitor' | 'request' | 'principal'>;

/** Exactly one of --visitor, --request and --principal. */
export function targetBody(options: TargetOptions): EraseTargetBody {
  const ids = { visitorId: options.visitor, requestId: options.request, principalId: options.principal };
  const named = Object.entries(ids).filter(([, id]) => id !== undefined);
  if (named.length !== 1)
    throw misused('name one person: exactly one of --visitor <id>, --request <id>, --principal <id>');
  return checked(eraseTargetSchema, Object.fromEntries(named), 'the id: ');
}

/** Knex puts the statement with its values before the driver's words: ids of people do not belong on a terminal. */
function withoutSql(error: Error): string {
  const byDriver = 'code' in error && typeof error.code === 'string';
  return byDriver
    ? error.message.slice(error.message.lastIndexOf(' - ') + 1).replace(/^- /, '')
    : error.message;
}

/** What the driver says of a file that this user may not write, or that is no database any more. */
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

/** Turns what a command throws into one sentence and an exit code. */
export function fail(error: unknown): void {
  const { exit, message } = exitOf(error);
  say(`gpd: ${message}`);
  io().exitCode = EXIT[exit];
}
