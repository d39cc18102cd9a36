import { describe, expect, it } from 'vitest';
import { isFresh, nonceExpiry } from '../../src/ingest/freshness.ts';
import { NOW } from '../support/make.ts';
import { fc } from '../support/property.ts';

const SKEW = 300_000;

describe('isFresh', () => {
  it.each([
    [0, true],
    [SKEW, true],
    [SKEW + 1, false],
    [-SKEW, true],
    [-SKEW - 1, false],
    [86_400_000, false],
    [-86_400_000, false],
  ])('clientTs %i ms behind the server: %s', (behind, fresh) => {
    expect(isFresh(NOW - behind, NOW, SKEW)).toBe(fresh);
  });

  it('is not, at the ends of time', () => {
    expect(isFresh(0, NOW, SKEW)).toBe(false);
    expect(isFresh(8_640_000_000_000_000, NOW, SKEW)).toBe(false);
  });
});

describe('nonceExpiry', () => {
  it('keeps a nonce at least twice the skew, and as long as its bundle is fresh on any node', () => {
    const ms = fc.integer({ min: 1, max: 86_400_000 });
    fc.assert(
      fc.property(ms, fc.double({ min: -1, max: 1, noNaN: true }), (skew, lead) => {
        const clientTs = NOW + Math.trunc(lead * skew);
        const kept = nonceExpiry(NOW, skew);
        expect(isFresh(clientTs, NOW, skew)).toBe(true);
        expect(kept - NOW).toBeGreaterThanOrEqual(2 * skew);
        // By the time it is forgotten the bundle is stale, even by a clock that is behind by half the skew.
        expect(isFresh(clientTs, kept + 1 - Math.floor(skew / 2), skew)).toBe(false);
      }),
    );
  });
});
