import { describe, expect, it } from 'vitest';
import { wilson } from '../../src/lib/wilson.ts';

describe('the interval of a share', () => {
  // Newcombe 1998, table I, method 3: 81/263, 15/148, 0/20, 1/29.
  it.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])('is the published one for %i of %i', (hits, n, low, high) => {
    const found = wilson(hits, n);
    expect(found.low).toBeCloseTo(low, 4);
    expect(found.high).toBeCloseTo(high, 4);
  });

  it('is open where nothing is known, and never leaves 0 to 1', () => {
    expect(wilson(0, 0)).toEqual({ low: 0, high: 1 });
    for (const n of [1, 2, 7, 1000])
      for (const hits of [0, n]) {
        const { low, high } = wilson(hits, n);
        expect(low >= 0 && high <= 1 && low < high).toBe(true);
      }
  });
});
