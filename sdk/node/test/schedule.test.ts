import { describe, expect, test } from 'vitest';
import { jitterMs, parseRetryAfter, waitMs } from '../src/schedule.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');

describe('the wait before a retry', () => {
  test.each([
    [1, 100],
    [2, 200],
    [4, 800],
    [5, 1000],
    [10, 1000],
  ])('is random below a bound that doubles up to a second: retry %i, %i ms', (retry, bound) => {
    expect(jitterMs(retry, 0)).toBe(0);
    expect(jitterMs(retry, 0.5)).toBe(bound / 2);
    expect(jitterMs(retry, 0.999)).toBeLessThan(bound);
  });

  test('is Retry-After and the jitter', () => {
    expect(waitMs(1, 1, 2000, 0.5)).toBe(1050);
    expect(waitMs(1, null, 2000, 0.5)).toBe(50);
  });

  test('is none when it would reach the deadline', () => {
    expect(waitMs(1, 2, 2000, 0)).toBeNull();
    expect(waitMs(1, 2, 2001, 0)).toBe(2000);
    expect(waitMs(2, null, 100, 0.5)).toBeNull();
  });
});

describe('Retry-After', () => {
  test.each([
    ['0', 0],
    [' 30 ', 30],
    ['Fri, 20 Nov 2026 10:00:30 GMT', 30],
    ['Fri, 20 Nov 2026 09:00:00 GMT', 0],
  ])('%j is %i s', (value, seconds) => {
    expect(parseRetryAfter(value, NOW)).toBe(seconds);
  });

  test.each([null, '', '-1', '1.5', 'soon', '99999999999', 'Fri, never'])('%j is none', (value) => {
    expect(parseRetryAfter(value, NOW)).toBeNull();
  });
});
