import { readFileSync } from 'node:fs';
import type { ZodType } from 'zod';
import { DAY, HOUR, MINUTE, SECOND } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';
import { kidSchema } from '../schema/bundle.ts';
import { explainIssue } from '../schema/explain-issue.ts';
import { failed, io, misused, onTerminal, printable } from './io.ts';

/** Checks the arguments and options of a command, and asks for a yes. */

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

const UNITS: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY };

/** Parses `30s`, `15m`, `12h`, `7d` (also `0d`) into milliseconds, or returns null. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  const unit = match?.[2] === undefined ? undefined : UNITS[match[2]];
  return match && unit !== undefined ? Number(match[1]) * unit : null;
}

/** The one of these words that it is. @throws {CommandFailed} `usage` with `otherwise` */
export function checkOneOf<Word extends string>(words: readonly Word[], text: unknown, otherwise: string) {
  const found = words.find((word) => word === text);
  if (found === undefined) throw misused(otherwise);
  return found;
}

export const checkKid = (text: string): string =>
  checked(kidSchema, text, `tenant ${JSON.stringify(text)}: `);

/** The help text of an argument that names a tenant. */
export const KID = 'the tenant';
export const ONLY_KID = 'the tenant; may be left out while there is only one';

/** For an option that may be repeated. */
export const collect = (value: string, previous: readonly string[]): string[] => [...previous, value];

/** The JSON that a file holds. */
export function readJsonFile(file: string): unknown {
  const value = tryOr(() => JSON.parse(readFileSync(file, 'utf8')) as unknown, undefined);
  if (value === undefined) throw misused(`${file} cannot be read as JSON`);
  return value;
}

/** Options of a command: those with a text, and those without. */
export type Flags<Text extends string, Bare extends string = never> = { readonly [Name in Text]?: string } & {
  readonly [Name in Bare]?: boolean;
};

export type DestructiveFlags = Flags<never, 'yes' | 'dryRun'>;

/** Asks on a terminal only: in a script a command that was called by name must not wait. */
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
