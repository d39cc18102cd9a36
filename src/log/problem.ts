import type { EntryCode } from './entry-check.ts';

/** What `gpd consent verify` finds (contract, section 14). */

export type ProblemCode =
  | 'checkpoint-missing'
  | 'checkpoint-not-extended'
  | 'vkey-changed'
  | 'entry-changed'
  | 'opening-changed'
  | 'state-changed'
  | 'policy-changed'
  | 'purpose-changed'
  | 'seal-missing'
  | 'seal-changed'
  | 'rows-missing'
  | 'rows-added'
  | EntryCode;

export interface LogProblem {
  readonly code: ProblemCode;
  /** The entry that it is about. */
  readonly seq?: number;
  readonly what: string;
}

/** Of one kind so many are named; a log that was rewritten has a million. */
const MAX_LISTED = 20;

export type Problems = ReturnType<typeof collectProblems>;

export function collectProblems() {
  const found: LogProblem[] = [];
  const counts = new Map<ProblemCode, number>();
  return {
    /** Read it while they are collected, too. */
    found: found as readonly LogProblem[],
    add(code: ProblemCode, what: string, seq?: number): void {
      const count = (counts.get(code) ?? 0) + 1;
      counts.set(code, count);
      if (count <= MAX_LISTED) found.push({ code, ...(seq === undefined ? {} : { seq }), what });
    },
  };
}
