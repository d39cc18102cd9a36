import {
  applyPolicy,
  combine,
  countFired,
  countKinds,
  type RulePolicy,
  WEAK_CAP,
} from '../ingest/verdict/classify.ts';
import { wilson } from '../lib/wilson.ts';
import type { TenantPolicy } from '../schema/policy.ts';
import { type VisitorClass, visitorClassSchema } from '../schema/responses.ts';

/**
 * Suggests weights of rules from the outcomes of a tenant, for `gpd policy`; docs/classification.md says why
 * it counts so.
 */

/** Decisions in which the same rules fired, and how many of them were found right and wrong. */
export interface Pattern {
  readonly rules: readonly string[];
  readonly incomplete: boolean;
  /** The class, if a signature or a review decided instead of the rules. */
  readonly fixed: VisitorClass | null;
  readonly decisions: number;
  readonly right: number;
  readonly wrong: number;
}

/** Each rule starts as if it had been right in 8 of 10 decisions before the first outcome. */
const PRIOR = { right: 8, all: 10 };
const USUAL = PRIOR.right / PRIOR.all;
/**
 * Findings needed to lower a weight, and to raise one. Raising needs more, because accusing a person is the
 * worse error.
 */
const LOWER_FROM = 20;
const RAISE_FROM = 50;

const sum = (patterns: readonly Pattern[], property: 'decisions' | 'right' | 'wrong'): number =>
  patterns.reduce((total, pattern) => total + pattern[property], 0);

function classOf({ rules, incomplete, fixed }: Pattern, policy: RulePolicy): VisitorClass {
  const fired = policy.rules.filter(({ id }) => rules.includes(id));
  return fixed ?? combine(countKinds(countFired(fired)), incomplete);
}

/** Turning a rule off may accuse more people: another rule may have counted for less next to it. */
function accusesMore(patterns: readonly Pattern[], earlier: RulePolicy, proposed: RulePolicy): boolean {
  const accusedBy = (policy: RulePolicy) => (one: Pattern) =>
    classOf(one, policy) === 'undeclared_automation';
  return patterns.filter(accusedBy(proposed)).some((one) => !accusedBy(earlier)(one));
}

function weightFor({ weight, kind }: RulePolicy['rules'][number], rightCount: number, n: number): number {
  const share = (rightCount + PRIOR.right) / (n + PRIOR.all);
  const proposedWeight = Math.round(((weight * share) / USUAL) * 100) / 100;
  if (proposedWeight < weight) return n < LOWER_FROM ? weight : proposedWeight;
  const isReliable = n >= RAISE_FROM && wilson(rightCount, n).low > USUAL;
  return isReliable ? Math.max(weight, Math.min(proposedWeight, kind === 'W' ? WEAK_CAP : 1)) : weight;
}

/** @param live the policy of the tenant that is in force */
export function suggestWeights(patterns: readonly Pattern[], live: TenantPolicy) {
  const livePolicy = applyPolicy(live);
  let policy = live;
  const rules = livePolicy.rules.flatMap((rule) => {
    const rulePatterns = patterns.filter((pattern) => pattern.rules.includes(rule.id));
    const [rightCount, wrongCount] = [sum(rulePatterns, 'right'), sum(rulePatterns, 'wrong')];
    const n = rightCount + wrongCount;
    if (n === 0) return [];
    const interval = wilson(rightCount, n);
    const without = { ...policy, off: [...policy.off, rule.id] };
    const shouldTurnOff =
      n >= LOWER_FROM && interval.high < 0.5 && !accusesMore(patterns, livePolicy, applyPolicy(without));
    const proposed = shouldTurnOff ? 'off' : weightFor(rule, rightCount, n);
    if (shouldTurnOff) policy = without;
    else if (proposed !== rule.weight)
      policy = { ...policy, weights: { ...policy.weights, [rule.id]: Number(proposed) } };
    return [
      { rule: rule.id, right: rightCount, wrong: wrongCount, ...interval, weight: rule.weight, proposed },
    ];
  });
  const countsBy = (basis: RulePolicy) => {
    const names = patterns.map((one) => classOf(one, basis));
    const patternsOf = (name: VisitorClass) => patterns.filter((_, i) => names[i] === name);
    return (name: VisitorClass): number => sum(patternsOf(name), 'decisions');
  };
  const [countBefore, countAfter] = [countsBy(livePolicy), countsBy(applyPolicy(policy))];
  const classes = visitorClassSchema.options.map((name) => {
    return { class: name, before: countBefore(name), after: countAfter(name) };
  });
  const judged = sum(patterns, 'right') + sum(patterns, 'wrong');
  return { decisions: sum(patterns, 'decisions'), judged, rules, classes, policy };
}
