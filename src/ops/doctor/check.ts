import type { DatabaseFacts, Facts } from './gather.ts';

/** A check is a pure judgement over gathered facts: what is so, and what to do about it. */

export type Status = 'pass' | 'warn' | 'fail' | 'skipped';

export interface Finding {
  readonly status: Status;
  /** What was found, in one sentence or less. */
  readonly detail: string;
  /** What to do about it, in one sentence; only of a warn or a fail. Without it, what views/doctor.en.txt says. */
  readonly remedy?: string | undefined;
}

/** By id, `area.what`, which is stable: monitoring may name it. */
export type Checks = Readonly<Record<string, (facts: Facts) => Finding>>;

export const pass = (detail: string): Finding => ({ status: 'pass', detail });
export const skipped = (detail: string): Finding => ({ status: 'skipped', detail });
export const warn = (detail: string, remedy?: string): Finding => ({ status: 'warn', detail, remedy });
export const fail = (detail: string, remedy?: string): Finding => ({ status: 'fail', detail, remedy });

const SHOWN = 5;

/** `a, b, c and 4 more` */
export function some(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(', ');
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}

/** `complaint` with the names of those that it is about. */
export const noneOf = (found: readonly string[], good: string, complaint: Finding): Finding =>
  found.length === 0 ? pass(good) : { ...complaint, detail: `${complaint.detail}: ${some(found)}` };

/** Skips where the database cannot be read: `database.reachable` says why. */
export const read =
  (assess: (database: DatabaseFacts, facts: Facts) => Finding) =>
  (facts: Facts): Finding =>
    'failure' in facts.database ? skipped('the database cannot be read') : assess(facts.database, facts);

export function mega(bytes: number): string {
  return `${Math.round(bytes / 1e6).toLocaleString('en')} MB`;
}

/** `3 days`, `1 hour` */
export function span(ms: number): string {
  const units = [
    [86_400_000, 'day'],
    [3_600_000, 'hour'],
    [60_000, 'minute'],
    [1000, 'second'],
  ] as const;
  const [size, name] = units.find(([unit]) => ms >= unit) ?? ([1000, 'second'] as const);
  const count = Math.floor(ms / size);
  return `${count.toLocaleString('en')} ${name}${count === 1 ? '' : 's'}`;
}

/** One finding of several looks at the same thing. */
export const firstComplaint =
  (...looks: readonly ((facts: Facts) => Finding)[]) =>
  (facts: Facts): Finding => {
    const findings = looks.map((look) => look(facts));
    return (
      findings.find(({ status }) => status !== 'pass') ??
      pass(findings.map(({ detail }) => detail).join('; '))
    );
  };
