import { describe, expect, it } from 'vitest';
import { readFacts } from '../../../src/ingest/verdict/facts.ts';
import { collisionChance, isCoarse, isShared } from '../../../src/ingest/verdict/identity.ts';
import { readSignals } from '../../../src/schema/signals.ts';
import * as browsers from './support/browsers.ts';
import { type Browser, gpu } from './support/browsers.ts';
import { nothing } from './support/changes.ts';

/** Contract 3.4 (a) and the arithmetic of (b) and (c): when an id may belong to several people. */

function coarse(make: () => Browser, change: (browser: Browser) => void = () => {}): boolean {
  const browser = make();
  change(browser);
  return isCoarse(readFacts(readSignals(browser.signals), { ...browser, hosting: null }));
}

const safariOf = (version: string): Browser => {
  const browser = browsers.safari();
  const userAgent = String(browser.signals.page['userAgent']).replace('Version/18.1', `Version/${version}`);
  browsers.rename(browser, { userAgent, platform: 'MacIntel' });
  return browser;
};

describe('a family that is coarse by nature', () => {
  it.each<readonly [string, () => Browser, (browser: Browser) => void]>([
    ['an iPhone', browsers.iPhone, nothing],
    ['Chrome on an iPhone', () => browsers.iPhone('CriOS/141.0.0.0 Mobile/15E148'), nothing],
    ['an old iPhone', () => browsers.iPhone('Version/15.6 Mobile/15E148'), nothing],
    ['an iPad in desktop mode', browsers.iPad, nothing],
    [
      'an old iPad in desktop mode',
      () => {
        const browser = safariOf('15.6');
        Object.assign(browser.signals.page, { maxTouchPoints: 5 });
        return browser;
      },
      nothing,
    ],
    ['Safari 17', () => safariOf('17.0'), nothing],
    ['Safari 26', () => safariOf('26.0'), nothing],
    ['Firefox with resistFingerprinting', browsers.firefoxRfp, nothing],
    [
      'SwiftShader',
      browsers.chrome,
      (browser) => gpu(browser, 'ANGLE (Google, Vulkan (SwiftShader Device), SwiftShader driver)'),
    ],
    ['llvmpipe', browsers.linuxChrome, (browser) => gpu(browser, 'llvmpipe (LLVM 19.1.7, 256 bits)')],
    [
      'the basic renderer of Windows',
      browsers.chrome,
      (browser) => gpu(browser, 'ANGLE (Microsoft, Microsoft Basic Render Driver)'),
    ],
    ['no WebGL at all', browsers.chrome, (browser) => gpu(browser, null)],
  ])('%s', (_name, make, change) => {
    expect(coarse(make, change)).toBe(true);
  });

  it.each<readonly [string, () => Browser]>([
    ['Chrome on Windows', browsers.chrome],
    ['Chrome on Linux', browsers.linuxChrome],
    ['Chrome on Android', browsers.androidChrome],
    ['Firefox', browsers.firefox],
    ['Brave', browsers.brave],
    ['Safari 16 on a Mac', () => safariOf('16.6')],
  ])('is not %s', (_name, make) => {
    expect(coarse(make)).toBe(false);
  });

  it('does not include Firefox with two marks of a defense', () => {
    const two = (browser: Browser): void => {
      Object.assign(browser.signals.time, { zone: 'UTC', clockStepMs: 16.67 });
    };
    expect(coarse(browsers.firefox, two)).toBe(false);
  });
});

describe('an id seen too widely', () => {
  const limits = { max_networks_per_day: 20, min_identity_bits: 12, collision_risk: 0.01 };
  const spread = (networksToday: number, pairsOfWeek: number, tenantPairsOfWeek: number) => ({
    networksToday,
    pairsOfWeek,
    tenantPairsOfWeek,
  });
  it.each([
    ['20 networks in a day', spread(20, 20, 100), false],
    ['21 networks in a day', spread(21, 21, 100), true],
    ['every pair of a small tenant', spread(1, 4999, 4999), false],
    ['a share of 2^-12 of 8,192 pairs', spread(1, 2, 8192), true],
    ['a share below 2^-12', spread(1, 2, 8193), false],
    ['one pair of 5,000: below 2^-12', spread(1, 1, 5000), false],
    ['two pairs of 5,000: above 2^-12', spread(1, 2, 5000), true],
    ['two pairs of 4,999: too few to say', spread(1, 2, 4999), false],
  ])('%s', (_name, spread, shared) => {
    expect(isShared(spread, limits)).toBe(shared);
  });

  it('obeys the settings', () => {
    expect(isShared(spread(4, 4, 10), { ...limits, max_networks_per_day: 3 })).toBe(true);
    expect(isShared(spread(1, 2, 5000), { ...limits, min_identity_bits: 2 })).toBe(false);
    expect(isShared(spread(1, 1250, 5000), { ...limits, min_identity_bits: 2 })).toBe(true);
  });
});

describe('the chance that a second network of the day is another device', () => {
  const chance = (
    networksToday: number,
    tenantPairsOfWeek: number,
    { pairsOfWeek = networksToday, seen: isSeen = true, marked = false } = {},
  ): number =>
    collisionChance({ seen: isSeen, marked, spread: { networksToday, pairsOfWeek, tenantPairsOfWeek } });

  it('is above 1 % from the first pair on, and grows with the tenant', () => {
    const byPairs = [0, 1, 10, 100, 4999].map((pairs) => Number(chance(2, pairs).toFixed(3)));
    expect(byPairs).toEqual([0.025, 0.025, 0.205, 0.72, 0.992]);
  });

  it('is that of the tenant’s own week from 5,000 pairs on', () => {
    expect(chance(2, 5000)).toBeCloseTo(0.5 / 0.6);
    expect(chance(2, 5000, { pairsOfWeek: 8 })).toBeCloseTo(0.5 / 0.6);
    expect(chance(2, 5000, { pairsOfWeek: 9 })).toBeCloseTo(1.5 / 1.6);
  });

  it('is zero for a new id, on a network it has today, and on the first network of the day', () => {
    expect(chance(2, 100, { seen: false })).toBe(0);
    expect(chance(2, 100, { marked: true })).toBe(0);
    expect(chance(1, 100, { pairsOfWeek: 6 })).toBe(0);
  });
});
