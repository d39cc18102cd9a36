import { describe, expect, it } from 'vitest';
import { isFresh } from '../../src/ingest/freshness.ts';
import { NOW } from '../support/make.ts';

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
