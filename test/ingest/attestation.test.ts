import { describe, expect, it } from 'vitest';
import { collisionChance, isCoarse, isShared } from '../../src/ingest/attestation.ts';
import { readAgent } from '../../src/ingest/user-agent.ts';
import { makeSignals } from '../support/make-signals.ts';

const PLAIN = { rfp: false, brave: false };
const limits = { maxNetworksPerDay: 20, minIdentityBits: 12 };
const KHTML = 'AppleWebKit/605.1.15 (KHTML, like Gecko)';

const coarse = (userAgent: string, page: object = {}, graphics: object = {}, unusable = PLAIN): boolean => {
  const signals = makeSignals({ page: { userAgent, ...page }, graphics: { ...graphics } });
  return isCoarse(signals, readAgent(userAgent), unusable);
};

describe('a family that is coarse by nature', () => {
  const mac = `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${KHTML}`;
  const linux =
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';

  it.each<[string, boolean, string, object?, object?, { rfp: boolean; brave: boolean }?]>([
    ['Chrome on a desktop', false, linux],
    [
      'iPhone',
      true,
      `Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) ${KHTML} Version/18.5 Mobile/15E148 Safari/604.1`,
    ],
    [
      'Chrome on an iPad',
      true,
      `Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) ${KHTML} CriOS/142.0 Mobile/15E148 Safari/604.1`,
    ],
    ['iPad in desktop mode', true, `${mac} Version/16.6 Safari/605.1.15`, { maxTouchPoints: 5 }],
    ['Safari 16 on a Mac', false, `${mac} Version/16.6 Safari/605.1.15`],
    ['Safari 17 on a Mac', true, `${mac} Version/17.0 Safari/605.1.15`],
    [
      'RFP',
      true,
      'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
      {},
      {},
      { rfp: true, brave: false },
    ],
    [
      'software graphics',
      true,
      linux,
      {},
      { renderer: 'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device), SwiftShader driver)' },
    ],
    ['no renderer at all', true, linux, {}, { renderer: null }],
    ['a virtual machine with llvmpipe', true, linux, {}, { renderer: 'llvmpipe (LLVM 15.0.7, 256 bits)' }],
    ['Brave', false, linux, {}, {}, { rfp: false, brave: true }],
  ])('%s: %s', (_what, expected, userAgent, page, graphics, unusable) => {
    expect(coarse(userAgent, page, graphics, unusable)).toBe(expected);
  });
});

describe('an id that several people share', () => {
  it.each<[string, number, number, number, boolean]>([
    ['one person', 1, 1, 1, false],
    ['20 networks in a day', 20, 20, 100, false],
    ['21 networks in a day', 21, 21, 100, true],
    ['half of a small tenant', 1, 2500, 4999, false],
    ['a share of exactly 2^-12', 1, 2, 8192, true],
    ['a share just below', 1, 2, 8193, false],
    ['the smallest tenant that is judged', 1, 2, 5000, true],
    ['one sighting of many', 1, 1, 1_000_000, false],
  ])('%s', (_what, networksToday, pairsOfWeek, tenantPairsOfWeek, shared) => {
    expect(isShared({ networksToday, pairsOfWeek, tenantPairsOfWeek }, limits)).toBe(shared);
  });
});

describe('the chance that a second network of the day is another device', () => {
  const chance = (
    networksToday: number,
    tenantPairsOfWeek: number,
    { pairsOfWeek = networksToday, seen = true, marked = false } = {},
  ): number => collisionChance({ seen, marked, spread: { networksToday, pairsOfWeek, tenantPairsOfWeek } });

  it('is above 1 % from the first pair on, and grows with the tenant', () => {
    const byPairs = [0, 1, 10, 100, 4999].map((pairs) => Number(chance(2, pairs).toFixed(3)));
    expect(byPairs).toEqual([0.025, 0.025, 0.205, 0.72, 0.992]);
  });

  it('is that of the tenant’s own week from 5,000 pairs on', () => {
    expect(chance(2, 5000)).toBeCloseTo(0.5 / 0.6);
    expect(chance(2, 5000, { pairsOfWeek: 8 })).toBeCloseTo(0.5 / 0.6);
    expect(chance(2, 5000, { pairsOfWeek: 9 })).toBeCloseTo(1.5 / 1.6);
  });

  it('is none of an id that is new, on a network it has today, or on the first of the day', () => {
    expect(chance(2, 100, { seen: false })).toBe(0);
    expect(chance(2, 100, { marked: true })).toBe(0);
    expect(chance(1, 100, { pairsOfWeek: 6 })).toBe(0);
  });
});
