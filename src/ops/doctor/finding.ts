export type Status = 'pass' | 'warn' | 'fail' | 'skipped';

export interface Finding {
  readonly status: Status;
  /** The finding in one sentence or less. */
  readonly detail: string;
  /** The command or the edit that puts a warn or a fail right. */
  readonly remedy?: string;
}

export type Findings = AsyncIterable<Finding> | Iterable<Finding>;

export const pass = (detail: string): Finding => ({ status: 'pass', detail });
export const warn = (detail: string, remedy: string): Finding => ({ status: 'warn', detail, remedy });
export const fail = (detail: string, remedy: string): Finding => ({ status: 'fail', detail, remedy });

/** There is nothing to look at, or nobody can, for a reason that is another check's finding. */
export class Skipped extends Error {
  override readonly name = 'Skipped';
}

const SHOWN = 5;

/** `a, b, c and 4 more` */
export function some(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(', ');
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}

/** The complaint with the names of those that it is about; nothing where nobody is named. */
export const about = (names: readonly string[], { detail, ...complaint }: Finding): readonly Finding[] =>
  names.length === 0 ? [] : [{ ...complaint, detail: `${detail}: ${some(names)}` }];

export function mega(bytes: number): string {
  return `${Math.round(bytes / 1e6).toLocaleString('en')} MB`;
}

const UNITS = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1000, 'second'],
] as const;

/** `3 days`, `1 hour`; a time that lies ahead is `0 seconds`. */
export function span(ms: number): string {
  const [size, name] = UNITS.find(([unit]) => ms >= unit) ?? ([1000, 'second'] as const);
  const count = Math.max(0, Math.floor(ms / size));
  return `${count.toLocaleString('en')} ${name}${count === 1 ? '' : 's'}`;
}
