import { describe, expect, it } from 'vitest';
import { countFired } from '../../../src/ingest/verdict/classify.ts';
import type { Rule, RuleKind } from '../../../src/ingest/verdict/rule.ts';

const rule = (id: string, kind: RuleKind, weight: number): Rule => ({
  id,
  kind,
  weight,
  text: id,
  fact: 'debugger',
  fires: () => true,
});
const counted = (...rules: readonly Rule[]): readonly string[] =>
  countFired(rules)
    .filter(({ weight }) => weight > 0)
    .map(({ id }) => id);

describe('of rules that state one fact', () => {
  const [strong, weak] = [rule('strong', 'A', 0.2), rule('weak', 'M', 0.9)];
  const [light, heavy] = [rule('light', 'M', 0.1), rule('heavy', 'M', 0.2)];

  it('the one of the strongest kind counts, wherever it stands and whatever it weighs', () => {
    expect(counted(strong, weak)).toEqual(['strong']);
    expect(counted(weak, strong)).toEqual(['strong']);
  });

  it('the heaviest of one kind counts, and the first of equals', () => {
    expect(counted(light, heavy)).toEqual(['heavy']);
    expect(counted(heavy, light)).toEqual(['heavy']);
    expect(counted(rule('first', 'M', 0.1), rule('second', 'M', 0.1))).toEqual(['first']);
  });
});
