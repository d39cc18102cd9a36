import type { FiredRule } from '../verdict.ts';
import { type Classification, combine, type KindCounts } from './classify.ts';
import type { Rule } from './facts.ts';
import { RULES } from './policy.ts';

const BY_ID: ReadonlyMap<string, Rule> = new Map(RULES.map((rule) => [rule.id, rule]));

/** What would have changed the class: said to the person concerned and to the reviewer. */
export interface Counterfactual {
  /** Rules each of which alone made the difference, with the class there would have been without it. */
  readonly decisive: readonly { readonly id: string; readonly class: Classification['class'] }[];
  /** When no single rule made the difference: the class without any of them. */
  readonly withoutAll: Classification['class'] | null;
}

function countKinds(rules: readonly FiredRule[]): KindCounts {
  const counts = { A: 0, T: 0, M: 0, W: 0 };
  const base = ({ id, kind }: FiredRule): FiredRule['kind'] => BY_ID.get(id)?.kind ?? kind;
  const strong = rules.filter((rule) => base(rule) !== 'W').map(({ id }) => id);
  for (const rule of rules) {
    const others = new Set(strong.filter((id) => id !== rule.id));
    counts[BY_ID.get(rule.id)?.demote?.(others) ?? base(rule)] += 1;
  }
  return counts;
}

/** What the rules alone make of it, whoever decided besides them. */
export function classByRules(rules: readonly FiredRule[], incomplete: boolean): Classification['class'] {
  return combine(countKinds(rules), incomplete);
}

/** @param incomplete whether the bundle alone already forbade `human` */
export function explain(rules: readonly FiredRule[], incomplete: boolean): Counterfactual {
  const actual = classByRules(rules, incomplete);
  const strong = rules.filter(({ kind }) => kind !== 'W');
  const decisive = strong.flatMap((rule) => {
    const without = combine(countKinds(rules.filter(({ id }) => id !== rule.id)), incomplete);
    return without === actual ? [] : [{ id: rule.id, class: without }];
  });
  const bare = combine(countKinds([]), incomplete);
  return { decisive, withoutAll: decisive.length === 0 && bare !== actual ? bare : null };
}
