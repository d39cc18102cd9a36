import type { ReplayLine } from './lines.ts';
import type { ReplayAnswer } from './runners.ts';

export interface Tally {
  total: number;
  readonly byReason: Record<string, number>;
  readonly byClass: Record<string, number>;
  mismatches: number;
  /** `human → unknown`: verdicts that another policy would change. */
  readonly changed: Record<string, number>;
  /** The first few, for a person to look at. */
  readonly examples: { readonly line: number; readonly expected: string; readonly got: string }[];
}

const EXAMPLES = 20;

function describe(reason: string | undefined, visitorClass: string | null | undefined): string {
  return [reason, visitorClass].filter((part) => part != null).join(' ');
}

export function count(tally: Tally, line: ReplayLine, answer: ReplayAnswer): void {
  tally.total += 1;
  tally.byReason[answer.reason] = (tally.byReason[answer.reason] ?? 0) + 1;
  if (answer.class !== null) tally.byClass[answer.class] = (tally.byClass[answer.class] ?? 0) + 1;
  if (answer.otherwise !== null && answer.otherwise !== answer.class) {
    const change = `${answer.class} → ${answer.otherwise}`;
    tally.changed[change] = (tally.changed[change] ?? 0) + 1;
  }
  const { expect } = line;
  const differs =
    (expect.reason !== undefined && expect.reason !== answer.reason) ||
    (expect.class !== undefined && expect.class !== answer.class);
  if (!differs) return;
  tally.mismatches += 1;
  if (tally.examples.length < EXAMPLES) {
    const expected = describe(expect.reason, expect.class);
    tally.examples.push({ line: line.number, expected, got: describe(answer.reason, answer.class) });
  }
}
