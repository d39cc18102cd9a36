import type { VisitorClass } from '../../schema/responses.ts';
import type { FiredRule } from '../verdict.ts';
import type { Facts, Rule } from './facts.ts';

export interface Classification {
  readonly class: Exclude<VisitorClass, 'declared_agent'>;
  readonly score: number;
  readonly rules: readonly FiredRule[];
  /** Distinct T rules. */
  readonly inconsistency: number;
  readonly automation: boolean;
}

/**
 * Any A is automation; T with M, or two M, is automation; T alone, one M ("a single weak tell") or an incomplete bundle
 * is unknown; else human. W rows only move the score (signals.md section 2).
 */
function combine(
  count: Readonly<Record<Rule['kind'], number>>,
  incomplete: boolean,
): Classification['class'] {
  if (count.A > 0) return 'undeclared_automation';
  if ((count.T > 0 && count.M > 0) || count.M >= 2) return 'undeclared_automation';
  return count.T > 0 || count.M > 0 || incomplete ? 'unknown' : 'human';
}

/** Weak rows together weigh at most so much. */
const WEAK_CAP = 0.1;

function scoreOf(fired: readonly Rule[]): number {
  const sum = (rules: readonly Rule[]): number => rules.reduce((total, rule) => total + rule.weight, 0);
  const weak = Math.min(WEAK_CAP, sum(fired.filter((rule) => rule.kind === 'W')));
  const total = sum(fired.filter((rule) => rule.kind !== 'W')) + weak;
  return Math.round(Math.min(1, total) * 1000) / 1000;
}

/** One scorer over the rules as data. */
export function classify(facts: Facts, rules: readonly Rule[]): Classification {
  const fired = rules.filter((rule) => rule.fires(facts));
  const count = { A: 0, T: 0, M: 0, W: 0 };
  for (const rule of fired) count[rule.kind] += 1;
  return {
    class: combine(count, facts.incomplete),
    score: scoreOf(fired),
    rules: fired.map(({ id, weight }) => ({ id, weight })),
    inconsistency: count.T,
    automation: count.A > 0,
  };
}
