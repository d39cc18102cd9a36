import { describe, expect, it } from 'vitest';
import { classify, combine } from '../../../src/ingest/verdict/classify.ts';
import type { Rule } from '../../../src/ingest/verdict/rule.ts';
import { changed, chrome, judge } from './support/browsers.ts';
import { all, header, ja4, patched, setFields } from './support/changes.ts';

/** signals.md section 2: how the rules that fired become a class and a score. */

type Counts = readonly [A: number, T: number, M: number, W: number];

const TABLE: readonly (readonly [Counts, string])[] = [
  [[0, 0, 0, 0], 'human'],
  [[0, 0, 0, 1], 'human'],
  [[0, 0, 0, 8], 'human'],
  [[1, 0, 0, 0], 'undeclared_automation'],
  [[1, 0, 0, 8], 'undeclared_automation'],
  [[6, 12, 8, 8], 'undeclared_automation'],
  [[0, 1, 0, 0], 'unknown'],
  [[0, 12, 0, 8], 'unknown'],
  [[0, 0, 1, 0], 'unknown'],
  [[0, 0, 1, 8], 'unknown'],
  [[0, 1, 1, 0], 'undeclared_automation'],
  [[0, 0, 2, 0], 'undeclared_automation'],
  [[0, 0, 8, 0], 'undeclared_automation'],
  [[0, 3, 1, 1], 'undeclared_automation'],
];

describe('the combination', () => {
  it.each(TABLE)('A T M W = %j: %s', ([A, T, M, W], expected) => {
    expect(combine({ A, T, M, W }, false)).toBe(expected);
  });

  it.each(TABLE)('an incomplete bundle with A T M W = %j is never human', ([A, T, M, W], expected) => {
    expect(combine({ A, T, M, W }, true)).toBe(expected === 'human' ? 'unknown' : expected);
  });
});

/** Rules that fire at will. */
const rule = (id: string, kind: Rule['kind'], weight: number, demote?: Rule['demote']): Rule => ({
  id,
  kind,
  weight,
  text: `Rule ${id}.`,
  fires: () => true,
  ...(demote === undefined ? {} : { demote }),
});
const { facts } = judge(chrome());
const silent: Rule = { ...rule('S1', 'A', 1), fires: () => false };

describe('the score', () => {
  it.each<readonly [string, readonly Rule[], number]>([
    ['nothing', [silent], 0],
    ['one rule', [rule('M1', 'M', 0.15)], 0.15],
    ['a sum without the errors of floating point', [rule('M1', 'M', 0.1), rule('T1', 'T', 0.2)], 0.3],
    ['never more than 1', [rule('A1', 'A', 0.9), rule('A2', 'A', 0.9)], 1],
    ['of weak rows the sum', [rule('W1', 'W', 0.02), rule('W2', 'W', 0.02)], 0.04],
    ['of weak rows at most 0.1', Array.from({ length: 8 }, (_, i) => rule(`W${i}`, 'W', 0.02)), 0.1],
    ['of weak rows beside strong ones at most 0.1', [rule('T1', 'T', 0.35), rule('W1', 'W', 0.3)], 0.45],
    ['a demoted rule at most as a weak one', [rule('A5', 'A', 0.6, () => 'W'), rule('M2', 'M', 0.2)], 0.3],
    ['a rule without weight', [rule('T1', 'T', 0)], 0],
  ])('%s', (_name, rules, score) => {
    expect(classify(facts, rules).score).toBe(score);
  });

  it('is the sum of the listed weights whenever no cap was hit', () => {
    const judged = changed(
      chrome,
      all(
        setFields('tells', { cdp: true }),
        setFields('time', { zone: 'UTC' }),
        header('sec-ch-ua-platform', '"macOS"'),
      ),
    );
    expect(judged.ids).toEqual(['T3', 'M2', 'W6']);
    expect(judged.score).toBeCloseTo(judged.rules.reduce((sum, { weight }) => sum + weight, 0));
  });
});

describe('a demotion', () => {
  it('looks at the other strong rules that fired, not at itself and not at weak ones', () => {
    const otherIds: string[][] = [];
    const demote = (otherRules: readonly Rule[]): null => {
      otherIds.push(otherRules.map(({ id }) => id).sort());
      return null;
    };
    classify(facts, [
      rule('A5', 'A', 0.6, demote),
      rule('M2', 'M', 0.2),
      rule('T8', 'T', 0.2),
      rule('W1', 'W', 0.02),
      silent,
    ]);
    // Later calls ask what would have been without a rule.
    expect(otherIds[0]).toEqual(['M2', 'T8']);
  });

  it.each<readonly [Rule['kind'], string, number]>([
    ['T', 'unknown', 1],
    ['M', 'unknown', 0],
    ['W', 'human', 0],
  ])('to %s counts as that kind', (kind, expected, inconsistency) => {
    const judged = classify(facts, [rule('A6', 'A', 0.6, () => kind)]);
    expect(judged).toMatchObject({ class: expected, inconsistency, automation: false });
    expect(judged.rules).toEqual([{ id: 'A6', weight: kind === 'W' ? 0.1 : 0.6, kind }]);
  });
});

describe('N1', () => {
  const handshake = 't13d1715h2_5b57614c22b0_3d5424432f57';
  it('alone is unknown: networks that open TLS do this', () => {
    expect(changed(chrome, ja4(handshake))).toMatchObject({
      class: 'unknown',
      strong: ['N1'],
      inconsistency: 1,
    });
  });

  it('counts as T: with an M it is automation', () => {
    const judged = changed(chrome, all(ja4(handshake), setFields('page', { chromeObject: false })));
    expect(judged).toMatchObject({ class: 'undeclared_automation', strong: ['N1', 'M6'] });
  });
});

describe('inconsistency', () => {
  it('counts distinct T rules and N1, and no M', () => {
    const judged = changed(
      chrome,
      all(
        ja4('t13d1715h2_5b57614c22b0_3d5424432f57'),
        header('sec-ch-ua-platform', '"macOS"'),
        patched('userAgent', 'platform', 'webdriver'),
        setFields('tells', { cdp: true }),
      ),
    );
    expect(judged.strong).toEqual(['T3', 'T8', 'N1', 'M2']);
    expect(judged.inconsistency).toBe(3);
  });
});
