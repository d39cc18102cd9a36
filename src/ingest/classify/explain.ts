import type { Counterfactual, RuleClass, Verdict } from '../verdict.ts';
import { combine, countFired, countKinds } from './combine.ts';
import type { Rule } from './facts.ts';

function search<R extends { readonly id: string; readonly kind: string }>(
  fired: readonly R[],
  classOf: (rules: readonly R[]) => RuleClass,
): Counterfactual {
  const actual = classOf(fired);
  const decisive = fired.flatMap((rule) => {
    if (rule.kind === 'W') return [];
    const without = classOf(fired.filter((other) => other !== rule));
    return without === actual ? [] : [{ id: rule.id, class: without }];
  });
  const bare = classOf([]);
  return { decisive, withoutAll: decisive.length === 0 && bare !== actual ? bare : null };
}

/**
 * Found while the verdict is made, by the rules that make it, and recorded with it: later rules explain nothing of it.
 * Null where no strong rule fired.
 * @param incomplete whether the bundle alone already forbade `human`
 */
export function counterfactualOf(fired: readonly Rule[], incomplete: boolean): Counterfactual | null {
  if (fired.every(({ kind }) => kind === 'W')) return null;
  return search(fired, (rules) => combine(countKinds(countFired(rules)), incomplete));
}

/** The result of the rules alone, without a review or a signature. */
export function classByRules({ rules, incomplete }: Pick<Verdict, 'rules' | 'incomplete'>): RuleClass {
  return combine(countKinds(rules), incomplete);
}

/** Verdicts from before this was recorded are explained by the kinds that their rules counted as. */
export function explain(verdict: Pick<Verdict, 'rules' | 'incomplete' | 'counterfactual'>): Counterfactual {
  const { rules, incomplete, counterfactual } = verdict;
  return counterfactual ?? search(rules, (some) => classByRules({ rules: some, incomplete }));
}
