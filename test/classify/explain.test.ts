import { describe, expect, it } from 'vitest';
import { classify } from '../../src/ingest/classify/classify.ts';
import { explain } from '../../src/ingest/classify/explain.ts';
import { RULES } from '../../src/ingest/classify/policy.ts';
import { type Browser, chrome, judge } from './support/browsers.ts';
import { type Change, groups, patched, set } from './support/changes.ts';

/** What would have changed the class: as if the rule had not fired, for those whom it concerns. */

const CDP = set('tells', { cdp: true });
const PATCHED = patched('userAgent');
const NO_OBJECT = set('page', { chromeObject: false });
const WEBDRIVER = set('page', { webdriver: true });
const PREATTACHED = set('frame', { srcdocPreattached: true });
const NO_BRANDS = set('worker', { uaData: { brands: [] } });
const UTC = set('time', { zone: 'UTC' });
const NO_SCREEN = groups({ screen: null });

function explained(...changes: readonly Change[]): {
  readonly said: ReturnType<typeof explain>;
  readonly browser: Browser;
} {
  const browser = chrome();
  for (const change of changes) change(browser);
  const { rules, facts } = judge(browser);
  return { said: explain(rules, facts.incomplete), browser };
}

describe('the explanation', () => {
  it.each<readonly [string, readonly Change[], ReturnType<typeof explain>]>([
    ['a human', [], { decisive: [], withoutAll: null }],
    ['a human with a weak rule', [UTC], { decisive: [], withoutAll: null }],
    ['one M', [CDP], { decisive: [{ id: 'M2', class: 'human' }], withoutAll: null }],
    ['one A beside a W', [WEBDRIVER, UTC], { decisive: [{ id: 'A1', class: 'human' }], withoutAll: null }],
    [
      'T and M',
      [PATCHED, CDP],
      {
        decisive: [
          { id: 'T8', class: 'unknown' },
          { id: 'M2', class: 'unknown' },
        ],
        withoutAll: null,
      },
    ],
    ['two A', [WEBDRIVER, PREATTACHED], { decisive: [], withoutAll: 'human' }],
    ['three M and T', [CDP, NO_OBJECT, PATCHED], { decisive: [], withoutAll: 'human' }],
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
    ['T and M', [PATCHED, CDP]],
  ])('tells the truth about %s: without the rule it is as it says', (_name, changes) => {
    const { said, browser } = explained(...changes);
    const { facts, class: actual } = judge(browser);
    for (const { id } of RULES) {
      const without = classify(
        facts,
        RULES.filter((rule) => rule.id !== id),
      ).class;
      const claim = said.decisive.find((entry) => entry.id === id)?.class ?? actual;
      expect({ id, class: claim }).toEqual({ id, class: without });
    }
  });
});
