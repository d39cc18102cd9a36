import { describe, expect, it } from 'vitest';
import {
  classByRules,
  classify,
  combine,
  countFired,
  explain,
  RULES,
} from '../../../src/ingest/verdict/classify.ts';
import type { Rule } from '../../../src/ingest/verdict/rule.ts';
import {
  type Change,
  changed,
  chrome,
  groups,
  handshake,
  header,
  JA4,
  judge,
  LLVMPIPE,
  NO_POINTER,
  OUTGROWN,
  patched,
  put,
} from './support/browsers.ts';

/** The rules that fired become a class and a score (signals.md section 2), and say what would have changed it. */

type Counts = readonly [A: number, T: number, M: number, W: number];

describe('the combination', () => {
  it.each<readonly [Counts, string]>([
    [[0, 0, 0, 0], 'human'],
    [[0, 0, 0, 8], 'human'],
    [[1, 0, 0, 0], 'undeclared_automation'],
    [[6, 12, 8, 8], 'undeclared_automation'],
    [[0, 1, 0, 0], 'unknown'],
    [[0, 12, 0, 8], 'unknown'],
    [[0, 0, 1, 0], 'unknown'],
    [[0, 0, 1, 8], 'unknown'],
    [[0, 1, 1, 0], 'undeclared_automation'],
    [[0, 0, 2, 0], 'undeclared_automation'],
    [[0, 0, 8, 0], 'undeclared_automation'],
  ])('A T M W = %j: %s, and never human in an incomplete bundle', ([A, T, M, W], expected) => {
    expect(combine({ A, T, M, W }, false)).toBe(expected);
    expect(combine({ A, T, M, W }, true)).toBe(expected === 'human' ? 'unknown' : expected);
  });
});

/** A rule that fires. */
const rule = (id: string, kind: Rule['kind'], weight: number, options: Partial<Rule> = {}): Rule => ({
  id,
  kind,
  weight,
  text: `Rule ${id}.`,
  fires: () => true,
  ...options,
});
const { facts } = judge(chrome());
const silent = rule('S1', 'A', 1, { fires: () => false });

describe('the score', () => {
  it.each<readonly [string, readonly Rule[], number]>([
    ['nothing', [silent], 0],
    ['one rule', [rule('M1', 'M', 0.15)], 0.15],
    ['a sum without the errors of floating point', [rule('M1', 'M', 0.1), rule('T1', 'T', 0.2)], 0.3],
    ['never more than 1', [rule('A1', 'A', 0.9), rule('A2', 'A', 0.9)], 1],
    ['of weak rows the sum', [rule('W1', 'W', 0.02), rule('W2', 'W', 0.02)], 0.04],
    ['of weak rows at most 0.1', Array.from({ length: 8 }, (_, i) => rule(`W${i}`, 'W', 0.02)), 0.1],
    ['of weak rows beside strong ones at most 0.1', [rule('T1', 'T', 0.35), rule('W1', 'W', 0.3)], 0.45],
    [
      'a demoted rule as a weak one',
      [rule('A5', 'A', 0.6, { demote: () => 'W' }), rule('M2', 'M', 0.2)],
      0.3,
    ],
  ])('%s', (_name, rules, score) => {
    expect(classify(facts, rules).score).toBe(score);
  });
});

describe('a demotion', () => {
  it('looks at the other strong rules that fired, not at itself and not at weak ones', () => {
    const otherIds: string[][] = [];
    const demote = (otherRules: readonly Rule[]): null => {
      otherIds.push(otherRules.map(({ id }) => id).sort());
      return null;
    };
    const otherRules = [rule('M2', 'M', 0.2), rule('T8', 'T', 0.2), rule('W1', 'W', 0.02), silent];
    classify(facts, [rule('A5', 'A', 0.6, { demote }), ...otherRules]);
    // Later calls ask what would have been without a rule.
    expect(otherIds[0]).toEqual(['M2', 'T8']);
  });

  it.each<readonly [Rule['kind'], string, number]>([
    ['T', 'unknown', 1],
    ['M', 'unknown', 0],
    ['W', 'human', 0],
  ])('to %s counts as that kind', (kind, expected, inconsistency) => {
    const judged = classify(facts, [rule('A6', 'A', 0.6, { demote: () => kind })]);
    expect(judged).toMatchObject({ class: expected, inconsistency, automation: false });
    expect(judged.rules).toEqual([{ id: 'A6', weight: kind === 'W' ? 0.1 : 0.6, kind }]);
  });
});

describe('of rules that state one fact', () => {
  const stated = (id: string, kind: Rule['kind'], weight: number) =>
    rule(id, kind, weight, { fact: 'debugger' });
  it.each([
    ['the strongest kind counts, whatever it weighs', [stated('one', 'A', 0.2), stated('M', 'M', 0.9)]],
    ['wherever it stands', [stated('M', 'M', 0.9), stated('one', 'A', 0.2)]],
    ['the heaviest of one kind counts', [stated('light', 'M', 0.1), stated('one', 'M', 0.2)]],
    ['wherever it stands', [stated('one', 'M', 0.2), stated('light', 'M', 0.1)]],
    ['the first of equals counts', [stated('one', 'M', 0.1), stated('second', 'M', 0.1)]],
  ])('%s', (_name, rules) => {
    const counted = countFired(rules).filter(({ weight }) => weight > 0);
    expect(counted.map(({ id }) => id)).toEqual(['one']);
  });
});

describe('inconsistency', () => {
  it('counts distinct T rules and N1, and no M', () => {
    const judged = changed(
      chrome,
      handshake(JA4.gecko),
      header('sec-ch-ua-platform', '"macOS"'),
      patched('userAgent', 'platform', 'webdriver'),
      put.tells({ cdp: true }),
    );
    expect(judged.strong).toEqual(['T3', 'T8', 'N1', 'M2']);
    expect(judged).toMatchObject({ class: 'undeclared_automation', inconsistency: 3 });
  });
});

const CDP = put.tells({ cdp: true });
const PATCHED = patched('userAgent');
const NO_OBJECT = put.page({ chromeObject: false });
const TWO_ANSWERS = put.tells({ notificationMismatch: true });
const WEBDRIVER = put.page({ webdriver: true });
const PREATTACHED = put.frame({ srcdocPreattached: true });
const NO_BRANDS = put.worker({ uaData: { brands: [] } });
const UTC = put.time({ zone: 'UTC' });
const NO_SCREEN = groups({ screen: null });

type Explained = Parameters<typeof explain>[0];

/** A verdict stores these parts of a judgement. */
const recordedOf = (judged: ReturnType<typeof judge>): Explained => ({
  rules: judged.rules,
  incomplete: judged.facts.incomplete,
  ...(judged.counterfactual && { counterfactual: judged.counterfactual }),
});
const explained = (...changes: readonly Change[]) => explain(recordedOf(changed(chrome, ...changes)));

describe('the explanation', () => {
  const decisive = (...ids: readonly string[]) => ({
    decisive: ids.map((id) => ({ id, class: ids.length > 1 ? 'unknown' : 'human' })),
    withoutAll: null,
  });
  it.each<readonly [string, readonly Change[], object]>([
    ['a human with a weak rule', [UTC], decisive()],
    ['one M', [CDP], decisive('M2')],
    ['one A beside a W', [WEBDRIVER, UTC], decisive('A1')],
    ['T and M', [PATCHED, NO_OBJECT], decisive('T8', 'M6')],
    ['two A', [WEBDRIVER, PREATTACHED], { decisive: [], withoutAll: 'human' }],
    ['three M and T', [TWO_ANSWERS, CDP, NO_OBJECT, PATCHED], { decisive: [], withoutAll: 'human' }],
    ['an incomplete bundle', [NO_SCREEN], decisive()],
    [
      'an incomplete bundle with an A',
      [NO_SCREEN, WEBDRIVER],
      { decisive: [{ id: 'A1', class: 'unknown' }], withoutAll: null },
    ],
  ])('of %s', (_name, changes, expected) => {
    expect(explained(...changes)).toEqual(expected);
  });

  it.each<readonly [string, readonly Change[]]>([
    ['A5 that M2 explains', [NO_BRANDS, CDP]],
    ['A6 that T8 explains', [PREATTACHED, PATCHED]],
    ['A1 and others', [WEBDRIVER, CDP, PATCHED]],
    ['M2 that T8 explains, beside another M', [PATCHED, CDP, NO_OBJECT]],
    ['M5 and M9, which state one fact', [NO_POINTER, LLVMPIPE]],
    ['T13 and M1 beside M2, which state two', [OUTGROWN, CDP]],
  ])('tells the truth about %s: without the rule it is as it says', (_name, changes) => {
    const judged = changed(chrome, ...changes);
    const explanation = explain(recordedOf(judged)).decisive;
    for (const { id } of RULES) {
      const otherRules = RULES.filter((rule) => rule.id !== id);
      const claim = explanation.find((entry) => entry.id === id)?.class ?? judged.class;
      expect({ id, class: claim }).toEqual({ id, class: classify(judged.facts, otherRules).class });
    }
  });

  it('is kept of no person and of no incomplete bundle', () => {
    for (const change of [UTC, NO_SCREEN]) expect(changed(chrome, change).counterfactual).toBeNull();
  });
});

describe('an old verdict', () => {
  it('is explained by the kinds that its rules counted as, whatever they are today', () => {
    const rules = [
      { id: 'W1', weight: 0.15, kind: 'M' },
      { id: 'W2', weight: 0.15, kind: 'M' },
      { id: 'A1', weight: 0, kind: 'W' },
      { id: 'X9', weight: 0.02, kind: 'W' },
    ] as const;
    const verdict = { rules, incomplete: false };
    expect(classByRules(verdict)).toBe('undeclared_automation');
    expect(explain(verdict)).toEqual({
      decisive: [
        { id: 'W1', class: 'unknown' },
        { id: 'W2', class: 'unknown' },
      ],
      withoutAll: null,
    });
  });

  it('is explained as it was explained when it was made', () => {
    const recorded = recordedOf(changed(chrome, NO_BRANDS, CDP));
    expect(explain(recorded).decisive).toContainEqual({ id: 'M2', class: 'undeclared_automation' });
    const renamed = recorded.rules.map((rule) => ({ ...rule, id: `${rule.id}0` }));
    expect(explain({ ...recorded, rules: renamed })).toEqual(explain(recorded));
  });
});
