import type { FiredRule } from '../verdict.ts';
import { combine, countFired, countKinds, WEAK_CAP } from './combine.ts';
import { counterfactualOf } from './explain.ts';
import type { Facts, Rule } from './facts.ts';

export type Classification = Readonly<ReturnType<typeof classify>>;

function scoreOf(rules: readonly FiredRule[]): number {
  const sum = (list: readonly FiredRule[]): number => list.reduce((total, { weight }) => total + weight, 0);
  const weak = Math.min(WEAK_CAP, sum(rules.filter(({ kind }) => kind === 'W')));
  const total = sum(rules.filter(({ kind }) => kind !== 'W')) + weak;
  return Math.round(Math.min(1, total) * 1000) / 1000;
}

/** One scorer over the rules as data. */
export function classify(facts: Facts, table: readonly Rule[]) {
  const fired = table.filter((rule) => rule.fires(facts));
  const rules = countFired(fired);
  const count = countKinds(rules);
  return {
    class: combine(count, facts.incomplete),
    score: scoreOf(rules),
    rules,
    /** Distinct T rules. */
    inconsistency: count.T,
    automation: count.A > 0,
    /** Null where no strong rule fired. */
    counterfactual: counterfactualOf(fired, facts.incomplete),
  };
}
