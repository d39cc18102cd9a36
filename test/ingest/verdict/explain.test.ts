import { describe, expect, it } from 'vitest';
import { classByRules, classify, explain, RULES } from '../../../src/ingest/verdict/classify.ts';
import { type Browser, changed, chrome, judge } from './support/browsers.ts';
import { all, type Change, drawnBy, groups, patched, setFields } from './support/changes.ts';

/** A counterfactual says what class the people concerned would have had without the rule. */

const CDP = setFields('tells', { cdp: true });
const PATCHED = patched('userAgent');
const NO_OBJECT = setFields('page', { chromeObject: false });
const TWO_ANSWERS = setFields('tells', { notificationMismatch: true });
const WEBDRIVER = setFields('page', { webdriver: true });
const PREATTACHED = setFields('frame', { srcdocPreattached: true });
const NO_BRANDS = setFields('worker', { uaData: { brands: [] } });
const NO_POINTER = setFields('media', { pointer: 'none', hover: false });
const SOFTWARE = drawnBy('llvmpipe');
const OUTGROWN = setFields('screen', {
  innerWidth: 1920,
  innerHeight: 1080,
  outerWidth: 1990,
  outerHeight: 1168,
});
const UTC = setFields('time', { zone: 'UTC' });
const NO_SCREEN = groups({ screen: null });

type Recorded = Parameters<typeof explain>[0];

/** A verdict stores these parts of a judgement. */
const recordedOf = ({ rules, facts, counterfactual }: ReturnType<typeof judge>): Recorded => ({
  rules,
  incomplete: facts.incomplete,
  ...(counterfactual && { counterfactual }),
});

function explained(...changes: readonly Change[]): {
  readonly said: ReturnType<typeof explain>;
  readonly browser: Browser;
} {
  const browser = chrome();
  for (const change of changes) change(browser);
  return { said: explain(recordedOf(judge(browser))), browser };
}

describe('the explanation', () => {
  it.each<readonly [string, readonly Change[], ReturnType<typeof explain>]>([
    ['a human', [], { decisive: [], withoutAll: null }],
    ['a human with a weak rule', [UTC], { decisive: [], withoutAll: null }],
    ['one M', [CDP], { decisive: [{ id: 'M2', class: 'human' }], withoutAll: null }],
    ['one A beside a W', [WEBDRIVER, UTC], { decisive: [{ id: 'A1', class: 'human' }], withoutAll: null }],
    [
      'T and M',
      [PATCHED, NO_OBJECT],
      {
        decisive: [
          { id: 'T8', class: 'unknown' },
          { id: 'M6', class: 'unknown' },
        ],
        withoutAll: null,
      },
    ],
    ['two A', [WEBDRIVER, PREATTACHED], { decisive: [], withoutAll: 'human' }],
    ['three M and T', [TWO_ANSWERS, CDP, NO_OBJECT, PATCHED], { decisive: [], withoutAll: 'human' }],
    ['an incomplete bundle', [NO_SCREEN], { decisive: [], withoutAll: null }],
    [
      'an incomplete bundle with an A',
      [NO_SCREEN, WEBDRIVER],
      { decisive: [{ id: 'A1', class: 'unknown' }], withoutAll: null },
    ],
  ])('of %s', (_name, changes, expected) => {
    expect(explained(...changes).said).toEqual(expected);
  });

  it.each<readonly [string, readonly Change[]]>([
    ['A5 that M2 explains', [NO_BRANDS, CDP]],
    ['A6 that T8 explains', [PREATTACHED, PATCHED]],
    ['A1 and others', [WEBDRIVER, CDP, PATCHED]],
    ['T and M', [PATCHED, NO_OBJECT]],
    ['M2 that T8 explains, beside another M', [PATCHED, CDP, NO_OBJECT]],
    ['M5 and M9, which state one fact', [NO_POINTER, SOFTWARE]],
    ['T13 and M1 beside M2, which state two', [OUTGROWN, CDP]],
  ])('tells the truth about %s: without the rule it is as it says', (_name, changes) => {
    const { said: explanation, browser } = explained(...changes);
    const { facts, class: actual } = judge(browser);
    for (const { id } of RULES) {
      const without = classify(
        facts,
        RULES.filter((rule) => rule.id !== id),
      ).class;
      const claim = explanation.decisive.find((entry) => entry.id === id)?.class ?? actual;
      expect({ id, class: claim }).toEqual({ id, class: without });
    }
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
    const recorded = recordedOf(changed(chrome, all(NO_BRANDS, CDP)));
    expect(explain(recorded).decisive).toContainEqual({ id: 'M2', class: 'undeclared_automation' });
    const renamed = recorded.rules.map((rule) => ({ ...rule, id: `${rule.id}0` }));
    expect(explain({ ...recorded, rules: renamed })).toEqual(explain(recorded));
  });

  it.each([
    ['of a person keeps nothing', UTC],
    ['of an incomplete bundle keeps nothing', NO_SCREEN],
  ])('%s', (_name, change) => {
    expect(changed(chrome, change).counterfactual).toBeNull();
  });
});
