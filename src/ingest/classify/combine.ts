import type { FiredRule, RuleClass } from '../verdict.ts';
import type { Rule, RuleKind } from './facts.ts';

/** From the rules that fired to a class. */

/** How many rules of each kind fired. */
export type KindCounts = Readonly<Record<RuleKind, number>>;

/**
 * Any A is automation; T with M, or two M, is automation; T alone, one M ("a single weak tell") or an incomplete bundle
 * is unknown; else human. W rows only move the score (signals.md section 2).
 */
export function combine(count: KindCounts, incomplete: boolean): RuleClass {
  if (count.A > 0) return 'undeclared_automation';
  if ((count.T > 0 && count.M > 0) || count.M >= 2) return 'undeclared_automation';
  return count.T > 0 || count.M > 0 || incomplete ? 'unknown' : 'human';
}

/** Weak rows together weigh at most so much. */
export const WEAK_CAP = 0.1;

const KINDS: readonly RuleKind[] = ['A', 'T', 'M', 'W'];

/** By kind before weight: a tenant's weights move the score, never the class. */
function isHeavier(a: FiredRule, b: FiredRule): boolean {
  const rank = KINDS.indexOf(b.kind) - KINDS.indexOf(a.kind);
  return rank > 0 || (rank === 0 && a.weight > b.weight);
}

/** What a rule counts as together with the other strong ones, before its fact is checked. */
function evaluateRule(rule: Rule, strong: readonly string[]): FiredRule {
  const others = new Set(strong.filter((id) => id !== rule.id));
  const kind = rule.demote?.(others) ?? rule.kind;
  return { id: rule.id, weight: kind === 'W' ? Math.min(rule.weight, WEAK_CAP) : rule.weight, kind };
}

/**
 * What each rule that fired counts as. Of those that state one fact the heaviest counts, or the first of equals; the
 * others are on record with no weight.
 */
export function countFired(fired: readonly Rule[]): FiredRule[] {
  const strong = fired.filter(({ kind }) => kind !== 'W').map(({ id }) => id);
  const counted = fired.map((rule) => evaluateRule(rule, strong));
  const heaviest = new Map<string, FiredRule>();
  for (const [i, one] of counted.entries()) {
    const fact = fired[i]?.fact;
    if (fact === undefined) continue;
    const other = heaviest.get(fact);
    if (other === undefined || isHeavier(one, other)) heaviest.set(fact, one);
  }
  return counted.map((one, i) => {
    const fact = fired[i]?.fact;
    return fact === undefined || heaviest.get(fact) === one ? one : { ...one, weight: 0, kind: 'W' };
  });
}

export function countKinds(rules: readonly FiredRule[]): KindCounts {
  const counts = { A: 0, T: 0, M: 0, W: 0 };
  for (const { kind } of rules) counts[kind] += 1;
  return counts;
}
