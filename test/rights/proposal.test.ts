import { describe, expect, it } from 'vitest';
import { RULES } from '../../src/ingest/verdict/classify.ts';
import { type Pattern, suggestWeights } from '../../src/rights/proposal.ts';
import { tenantPolicySchema } from '../../src/schema/policy.ts';
import { fc } from '../support/property.ts';

const LIVE = tenantPolicySchema.parse({});
const pattern = (rules: readonly string[], over: Partial<Pattern> = {}): Pattern => ({
  rules,
  incomplete: false,
  fixed: null,
  decisions: (over.right ?? 0) + (over.wrong ?? 0) + 1,
  right: 0,
  wrong: 0,
  ...over,
});
const weightOf = (id: string): number => RULES.find((rule) => rule.id === id)?.weight ?? Number.NaN;
const proposedFor = (id: string, rightFindings: number, wrongFindings: number): unknown =>
  suggestWeights([pattern([id], { right: rightFindings, wrong: wrongFindings })], LIVE).rules.find(
    ({ rule }) => rule === id,
  )?.proposed;
const rounded = (n: number): number => Math.round(100 * n) / 100;

describe('the proposal of weights', () => {
  it('lowers a weight from 20 findings on, by the share that was right after ten earlier ones', () => {
    expect(proposedFor('A1', 11, 8)).toBe(weightOf('A1'));
    expect(proposedFor('A1', 12, 8)).toBe(rounded((weightOf('A1') * 20) / 30 / 0.8));
    expect(proposedFor('A1', 120, 80)).toBe(rounded((weightOf('A1') * 128) / 210 / 0.8));
  });

  it('raises a weight from 50 findings on, and only where it was surely right more often than usual', () => {
    expect(proposedFor('T8', 49, 0)).toBe(weightOf('T8'));
    expect(proposedFor('T8', 50, 0)).toBe(rounded((weightOf('T8') * 58) / 60 / 0.8));
    // 90 % of 50: by chance 80 % would look like it, too.
    expect(proposedFor('T8', 45, 5)).toBe(weightOf('T8'));
    expect(proposedFor('A1', 5000, 0)).toBe(1);
    for (const { id } of RULES.filter(({ kind }) => kind === 'W'))
      expect(proposedFor(id, 5000, 0)).toBeLessThanOrEqual(Math.max(0.1, weightOf(id)));
  });

  it('switches a rule off that was surely wrong more often than right', () => {
    expect(proposedFor('A1', 0, 19)).toBe(weightOf('A1'));
    expect(proposedFor('A1', 0, 20)).toBe('off');
    expect(proposedFor('A1', 8, 12)).not.toBe('off');
  });

  it('says who would be classed otherwise, and leaves what no rule decided', () => {
    const { decisions, judged, classes, policy } = suggestWeights(
      [
        pattern(['A1'], { wrong: 30, decisions: 100 }),
        pattern(['A1', 'T8'], { decisions: 7 }),
        pattern(['A1'], { fixed: 'declared_agent', decisions: 5 }),
        pattern(['A1'], { fixed: 'human', decisions: 3 }),
        pattern(['A1'], { incomplete: true, decisions: 2 }),
        pattern(['X9'], { decisions: 1 }),
      ],
      LIVE,
    );
    expect({ decisions, judged }).toEqual({ decisions: 118, judged: 30 });
    expect(policy).toEqual({ ...LIVE, off: ['A1'] });
    expect(classes).toEqual([
      { class: 'human', before: 4, after: 104 },
      { class: 'declared_agent', before: 5, after: 5 },
      { class: 'undeclared_automation', before: 109, after: 0 },
      { class: 'unknown', before: 0, after: 9 },
    ]);
  });

  it('starts from the weights of the tenant, and keeps what it set', () => {
    const live = tenantPolicySchema.parse({ weights: { A1: 0.5, W1: 0.01 }, off: ['T8'] });
    const { rules, policy } = suggestWeights([pattern(['A1', 'T8'], { right: 12, wrong: 8 })], live);
    expect(rules.map(({ rule, weight, proposed }) => [rule, weight, proposed])).toEqual([['A1', 0.5, 0.42]]);
    expect(policy).toEqual({ ...live, weights: { A1: 0.42, W1: 0.01 } });
  });

  it('switches no rule off that keeps another one from accusing', () => {
    // A5 counts as W next to M2, as the device mode of developer tools does this.
    const { rules, policy, classes } = suggestWeights(
      [pattern(['A5', 'M2'], { decisions: 9 }), pattern(['M10', 'M2'], { wrong: 30 })],
      LIVE,
    );
    expect(policy.off).toEqual(['M10']);
    expect(rules.find(({ rule }) => rule === 'M2')?.proposed).toBeLessThan(weightOf('M2'));
    expect(classes.find(({ class: name }) => name === 'undeclared_automation')).toMatchObject({ after: 0 });
  });

  it('never accuses anybody, and never raises on fewer than 50 findings', () => {
    const findingCounts = fc.integer({ min: 0, max: 60 });
    const rules = fc.uniqueArray(fc.constantFrom(...RULES.map(({ id }) => id)), { maxLength: 6 });
    const ruleFindings = fc.record({
      rules,
      incomplete: fc.boolean(),
      right: findingCounts,
      wrong: findingCounts,
    });
    fc.assert(
      fc.property(fc.array(ruleFindings, { maxLength: 6 }), (patterns) => {
        const found = suggestWeights(
          patterns.map((one) => pattern(one.rules, one)),
          LIVE,
        );
        const automation = found.classes.find(({ class: name }) => name === 'undeclared_automation');
        expect(automation!.after).toBeLessThanOrEqual(automation!.before);
        for (const { right: rightFindings, wrong: wrongFindings, weight, proposed } of found.rules)
          if (rightFindings + wrongFindings < 50 && proposed !== 'off')
            expect(proposed).toBeLessThanOrEqual(weight);
        expect(tenantPolicySchema.parse(found.policy)).toEqual(found.policy);
      }),
      { numRuns: 300 },
    );
  });
});
