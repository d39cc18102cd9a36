import { applyPolicy, type Policy } from '../ingest/verdict/policy.ts';
import { combine, countFired, countKinds, WEAK_CAP } from '../ingest/verdict/score.ts';
import { wilson } from '../lib/wilson.ts';
import type { TenantPolicy } from '../schema/policy.ts';
import { type VisitorClass, visitorClassSchema } from '../schema/responses.ts';

/** Which weights the outcomes of a tenant suggest; docs/classification.md says why it is counted like this. */

/** Decisions in which the same rules fired, and how many of them were found right and wrong. */
export interface Pattern {
  readonly rules: readonly string[];
  readonly incomplete: boolean;
  /** A signature or a review decided, and no rule. */
  readonly fixed: VisitorClass | null;
  readonly decisions: number;
  readonly right: number;
  readonly wrong: number;
}

/** As if each rule had been right in 8 of 10 decisions before the first outcome. */
const PRIOR = { right: 8, all: 10 };
const USUAL = PRIOR.right / PRIOR.all;
/** So many findings it takes to lower a weight, and to raise one: to accuse a person is the worse error. */
const LOWER_FROM = 20;
const RAISE_FROM = 50;

const sum = (patterns: readonly Pattern[], of: 'decisions' | 'right' | 'wrong'): number =>
  patterns.reduce((total, pattern) => total + pattern[of], 0);

function classOf({ rules, incomplete, fixed }: Pattern, policy: Policy): VisitorClass {
  const fired = policy.rules.filter(({ id }) => rules.includes(id));
  return fixed ?? combine(countKinds(countFired(fired)), incomplete);
}

/** A rule that is off may free another one that counted for less next to it. */
function accuses(patterns: readonly Pattern[], before: Policy, after: Policy): boolean {
  const accusedBy = (by: Policy) => (one: Pattern) => classOf(one, by) === 'undeclared_automation';
  return patterns.filter(accusedBy(after)).some((one) => !accusedBy(before)(one));
}

function weightFor({ weight, kind }: Policy['rules'][number], right: number, n: number): number {
  const share = (right + PRIOR.right) / (n + PRIOR.all);
  const next = Math.round(((weight * share) / USUAL) * 100) / 100;
  if (next < weight) return n < LOWER_FROM ? weight : next;
  const sure = n >= RAISE_FROM && wilson(right, n).low > USUAL;
  return sure ? Math.max(weight, Math.min(next, kind === 'W' ? WEAK_CAP : 1)) : weight;
}

/** @param live the policy of the tenant as it is set now */
export function propose(patterns: readonly Pattern[], live: TenantPolicy) {
  const before = applyPolicy(live);
  let policy = live;
  const rules = before.rules.flatMap((rule) => {
    const own = patterns.filter((pattern) => pattern.rules.includes(rule.id));
    const [right, wrong] = [sum(own, 'right'), sum(own, 'wrong')];
    const n = right + wrong;
    if (n === 0) return [];
    const interval = wilson(right, n);
    const without = { ...policy, off: [...policy.off, rule.id] };
    const off = n >= LOWER_FROM && interval.high < 0.5 && !accuses(patterns, before, applyPolicy(without));
    const proposed = off ? 'off' : weightFor(rule, right, n);
    if (off) policy = without;
    else if (proposed !== rule.weight)
      policy = { ...policy, weights: { ...policy.weights, [rule.id]: Number(proposed) } };
    return [{ rule: rule.id, right, wrong, ...interval, weight: rule.weight, proposed }];
  });
  const countsBy = (by: Policy) => {
    const names = patterns.map((one) => classOf(one, by));
    const of = (name: VisitorClass) => patterns.filter((_, i) => names[i] === name);
    return (name: VisitorClass): number => sum(of(name), 'decisions');
  };
  const [was, is] = [countsBy(before), countsBy(applyPolicy(policy))];
  const classes = visitorClassSchema.options.map((name) => {
    return { class: name, before: was(name), after: is(name) };
  });
  const judged = sum(patterns, 'right') + sum(patterns, 'wrong');
  return { decisions: sum(patterns, 'decisions'), judged, rules, classes, policy };
}
