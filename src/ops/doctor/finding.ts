/** The results of the checks of `gpd doctor`, and helpers for their texts. */

export type Status = 'pass' | 'warn' | 'fail' | 'skipped';

export interface Finding {
  readonly status: Status;
  /** The finding in one sentence or less. */
  readonly detail: string;
  /** The command or the edit that resolves a warning or a failure. */
  readonly remedy?: string;
}

export type Findings = AsyncIterable<Finding> | Iterable<Finding>;

export const pass = (detail: string): Finding => ({ status: 'pass', detail });
export const warn = (detail: string, remedy: string): Finding => ({ status: 'warn', detail, remedy });
export const fail = (detail: string, remedy: string): Finding => ({ status: 'fail', detail, remedy });

/** Thrown where there is nothing to check, or where a fault that another check reports prevents it. */
export class Skipped extends Error {
  override readonly name = 'Skipped';
}

const MAX_SHOWN = 5;

/** `a, b, c and 4 more` */
export function listSome(names: readonly string[]): string {
  const shown = names.slice(0, MAX_SHOWN).join(', ');
  return names.length > MAX_SHOWN ? `${shown} and ${names.length - MAX_SHOWN} more` : shown;
}

/** @returns the complaint with the names appended, or nothing for an empty list */
export const about = (names: readonly string[], { detail, ...complaint }: Finding): readonly Finding[] =>
  names.length === 0 ? [] : [{ ...complaint, detail: `${detail}: ${listSome(names)}` }];

/**
 * @returns the remedy with the first tenant in place of `KID`, so that it can be copied, and the others
 * behind it
 */
export function perTenant(remedy: string, [kid = '', ...otherKids]: readonly string[]): string {
  const rest = otherKids.length === 0 ? '' : ` Then the same for ${listSome(otherKids)}.`;
  return remedy.replaceAll('KID', kid) + rest;
}

export function mega(bytes: number): string {
  return `${Math.round(bytes / 1e6).toLocaleString('en')} MB`;
}

const UNITS = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1000, 'second'],
] as const;

/** Formats a duration as `3 days` or `1 hour`; a negative one is `0 seconds`. */
export function span(ms: number): string {
  const [size, name] = UNITS.find(([unit]) => ms >= unit) ?? ([1000, 'second'] as const);
  const count = Math.max(0, Math.floor(ms / size));
  return `${count.toLocaleString('en')} ${name}${count === 1 ? '' : 's'}`;
}
