import { describe, expect, it } from 'vitest';
import { collisionChance, isCoarse, isShared } from '../../../src/ingest/verdict/identity.ts';
import { createFacts } from '../../support/make-signals.ts';
import {
  androidChrome,
  type Browser,
  brave,
  type Change,
  changed,
  chrome,
  drawnBy,
  firefox,
  firefoxRfp,
  iPad,
  iPhone,
  LLVMPIPE,
  linuxChrome,
  NO_WEBGL,
  named,
  nothing,
  put,
  SWIFTSHADER,
  safari,
} from './support/browsers.ts';

/** Contract 3.4 (a) and the arithmetic of (b) and (c): when an id may belong to several people. */

const versioned = (version: string): Change => {
  const userAgent = String(safari().signals.page['userAgent']);
  return named(userAgent.replace('Version/18.1', `Version/${version}`), 'MacIntel');
};

describe('a family that is coarse by nature', () => {
  it.each<readonly [string, () => Browser, Change, boolean]>([
    ['an iPhone', iPhone, nothing, true],
    ['Chrome on an iPhone', () => iPhone('CriOS/141.0.0.0 Mobile/15E148'), nothing, true],
    ['an old iPhone', () => iPhone('Version/15.6 Mobile/15E148'), nothing, true],
    ['an old iPad in desktop mode', iPad, versioned('15.6'), true],
    ['Safari 17', safari, versioned('17.0'), true],
    ['resistFingerprinting', firefoxRfp, nothing, true],
    ['SwiftShader', chrome, SWIFTSHADER, true],
    ['llvmpipe', linuxChrome, LLVMPIPE, true],
    ['the basic renderer', chrome, drawnBy('ANGLE (Microsoft, Microsoft Basic Render Driver)'), true],
    ['no WebGL at all', chrome, NO_WEBGL, true],
    ['Chrome on Windows', chrome, nothing, false],
    ['Chrome on Android', androidChrome, nothing, false],
    ['Firefox', firefox, nothing, false],
    ['Brave', brave, nothing, false],
    ['Safari 16 on a Mac', safari, versioned('16.6'), false],
    ['Firefox with two marks of a defense', firefox, put.time({ zone: 'UTC', clockStepMs: 16.67 }), false],
  ])('%s: %s %s %s', (_name, make, change, isOne) => {
    expect(isCoarse(changed(make, change).facts)).toBe(isOne);
  });

  it('is none where no graphics are told at all: that bundle is incomplete', () => {
    expect(isCoarse(createFacts({ graphics: null }))).toBe(false);
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
