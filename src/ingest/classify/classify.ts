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

/** How many rules of each kind fired. */
export type KindCounts = Readonly<Record<Rule['kind'], number>>;

/**
 * Any A is automation; T with M, or two M, is automation; T alone, one M ("a single weak tell") or an incomplete bundle
 * is unknown; else human. W rows only move the score (signals.md section 2).
 */
export function combine(count: KindCounts, incomplete: boolean): Classification['class'] {
  if (count.A > 0) return 'undeclared_automation';
  if ((count.T > 0 && count.M > 0) || count.M >= 2) return 'undeclared_automation';
  return count.T > 0 || count.M > 0 || incomplete ? 'unknown' : 'human';
}

/** Weak rows together weigh at most so much. */
const WEAK_CAP = 0.1;

interface Fired {
  readonly rule: Rule;
  /** After what the other rules that fired explain away. */
  readonly kind: Rule['kind'];
  readonly weight: number;
}

function scoreOf(fired: readonly Fired[]): number {
  const sum = (list: readonly Fired[]): number => list.reduce((total, { weight }) => total + weight, 0);
  const weak = Math.min(WEAK_CAP, sum(fired.filter(({ kind }) => kind === 'W')));
  const total = sum(fired.filter(({ kind }) => kind !== 'W')) + weak;
  return Math.round(Math.min(1, total) * 1000) / 1000;
}

function fire(facts: Facts, rules: readonly Rule[]): Fired[] {
  const fired = rules.filter((rule) => rule.fires(facts));
  const strong = fired.filter((rule) => rule.kind !== 'W').map((rule) => rule.id);
  return fired.map((rule) => {
    const others = new Set(strong.filter((id) => id !== rule.id));
    const kind = rule.demote?.(others) ?? rule.kind;
    return { rule, kind, weight: kind === 'W' ? Math.min(rule.weight, WEAK_CAP) : rule.weight };
  });
}

/** One scorer over the rules as data. */
export function classify(facts: Facts, rules: readonly Rule[]): Classification {
  const fired = fire(facts, rules);
  const count = { A: 0, T: 0, M: 0, W: 0 };
  for (const { kind } of fired) count[kind] += 1;
  return {
    class: combine(count, facts.incomplete),
    score: scoreOf(fired),
    rules: fired.map(({ rule, kind, weight }) => ({ id: rule.id, weight, kind })),
    inconsistency: count.T,
    automation: count.A > 0,
  };
}
