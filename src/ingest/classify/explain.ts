import type { FiredRule } from '../verdict.ts';
import { type Classification, combine, type KindCounts } from './classify.ts';

/** What would have changed the class: said to the person concerned and to the reviewer. */
export interface Counterfactual {
  /** Rules each of which alone made the difference, with the class there would have been without it. */
  readonly decisive: readonly { readonly id: string; readonly class: Classification['class'] }[];
  /** When no single rule made the difference: the class without any of them. */
  readonly withoutAll: Classification['class'] | null;
}

function countKinds(rules: readonly FiredRule[]): KindCounts {
  const counts = { A: 0, T: 0, M: 0, W: 0 };
  for (const { kind } of rules) counts[kind] += 1;
  return counts;
}

/** @param incomplete whether the bundle alone already forbade `human` */
export function explain(rules: readonly FiredRule[], incomplete: boolean): Counterfactual {
  const actual = combine(countKinds(rules), incomplete);
  const strong = rules.filter(({ kind }) => kind !== 'W');
  const decisive = strong.flatMap((rule) => {
    const without = combine(countKinds(rules.filter(({ id }) => id !== rule.id)), incomplete);
    return without === actual ? [] : [{ id: rule.id, class: without }];
  });
  const bare = combine(countKinds([]), incomplete);
  return { decisive, withoutAll: decisive.length === 0 && bare !== actual ? bare : null };
}
