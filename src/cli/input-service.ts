import type { ZodType } from 'zod';
import { readSecretFile } from '../config.ts';
import { NotRegularFile } from '../db/own-files.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';
import { kidSchema } from '../schema/bundle.ts';
import { explainIssue } from '../schema/explain-issue.ts';
import { failed, io, isInteractive, misused, printable } from './io-service.ts';

/** Checks the arguments and options of a command, and asks for a yes. */

/** @throws {CommandFailed} `usage`, which begins with `prefix` */
export function checkValue<T>(schema: ZodType<T>, value: unknown, prefix: string): T {
  const { data, error } = schema.safeParse(value, { error: explainIssue });
  if (error) throw misused(`${prefix}${error.issues[0]?.message}`);
  return data;
}

/** Checks a value with parts. @throws {CommandFailed} `usage`, which also names the part that is invalid */
export function checkObject<T>(schema: ZodType<T>, value: unknown, prefix = ''): T {
  const { data, error } = schema.safeParse(value, { error: explainIssue });
  if (error) throw misused(`${prefix}${error.issues[0]?.path.join('.')}: ${error.issues[0]?.message}`);
  return data;
}

/** @param text as an option or an argument gives it @throws {CommandFailed} `usage` with `message` */
export function checkInteger(text: string | number, [min, max]: readonly [number, number], message: string) {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < min || number > max) throw misused(message);
  return number;
}

const UNITS: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY };

/** Parses `30s`, `15m`, `12h`, `7d` (also `0d`) into milliseconds, or returns null. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  const unit = match?.[2] === undefined ? undefined : UNITS[match[2]];
  return match && unit !== undefined ? Number(match[1]) * unit : null;
}

/** @returns `text`, typed as one of these words @throws {CommandFailed} `usage` with `message` */
export function checkOneOf<Word extends string>(words: readonly Word[], text: unknown, message: string) {
  const found = words.find((word) => word === text);
  if (found === undefined) throw misused(message);
  return found;
}

export const checkKid = (text: string): string =>
  checkValue(kidSchema, text, `tenant ${JSON.stringify(text)}: `);

/** The help text of an argument that names a tenant. */
export const KID_HELP = 'the tenant';
export const ONLY_KID_HELP = 'the tenant; may be left out while there is only one';

/** Commander calls it for each value of an option that may be repeated. */
export const collect = (value: string, previous: readonly string[]): string[] => [...previous, value];

/** @returns null where the file cannot be read @throws {CommandFailed} `usage` for a FIFO, a device or a folder */
export function readGivenFile(file: string): Buffer | null {
  try {
    return readSecretFile(file);
  } catch (error) {
    if (error instanceof NotRegularFile) throw misused(error.message);
    return null;
  }
}

/** @throws {CommandFailed} `usage` where the file is missing or is not JSON */
export function readJsonFile(file: string): unknown {
  const text = readGivenFile(file)?.toString('utf8') ?? '';
  const value = tryOr(() => JSON.parse(text) as unknown, undefined);
  if (value === undefined) throw misused(`${file} cannot be read as JSON`);
  return value;
}

/** Options of a command: those with a value, and those without. */
export type Flags<Text extends string, Bare extends string = never> = { readonly [Name in Text]?: string } & {
  readonly [Name in Bare]?: boolean;
};

export type DestructiveFlags = Flags<never, 'yes' | 'dryRun'>;

/** Asks on a terminal. A script is not asked: nothing may delay the revocation of a leaked key. */
export async function confirmOnTerminal(options: DestructiveFlags, consequence: string): Promise<void> {
  if (isInteractive()) await confirm(options, consequence);
}

/** Asks on a terminal; without one the command needs --yes. --dry-run asks nothing. @param consequence begins the question */
export async function confirm(options: DestructiveFlags, consequence: string): Promise<void> {
  if (options.yes === true || options.dryRun === true) return;
  if (!isInteractive()) throw misused(`${consequence}: repeat with --yes, or check first with --dry-run`);
  const { createInterface } = await import('node:readline/promises');
  const prompt = createInterface({ input: io().stdin, output: io().stderr });
  const answer = await prompt.question(`${printable(consequence)}. Type yes to continue: `);
  prompt.close();
  if (answer.trim() !== 'yes') throw failed('nothing was changed');
}
