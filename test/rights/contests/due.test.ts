import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { LONGEST_MS, PERIODS, untilDue } from '../../../src/rights/contests/contest.ts';

describe('one calendar month on', () => {
  it.each([
    ['2026-01-15T10:20:30.456Z', '2026-02-15T10:20:30.456Z'],
    ['2026-01-31T23:59:59.999Z', '2026-02-28T23:59:59.999Z'],
    ['2028-01-31T00:00:00.000Z', '2028-02-29T00:00:00.000Z'],
    ['2026-03-31T12:00:00.000Z', '2026-04-30T12:00:00.000Z'],
    ['2026-12-31T12:00:00.000Z', '2027-01-31T12:00:00.000Z'],
    ['2026-02-28T12:00:00.000Z', '2026-03-28T12:00:00.000Z'],
  ])('%s → %s', (from, to) => {
    expect(new Date(PERIODS.gdpr.dueAt(Date.parse(from))).toISOString()).toBe(to);
  });
});

describe('the periods of other laws', () => {
  const AT = Date.parse('2026-01-31T12:00:00Z');
  it.each([
    ['ccpa', 45, 45],
    ['dpdp', 90, 0],
  ] as const)('%s: %i days, and %i more', (profile, days, extendDays) => {
    expect(PERIODS[profile].dueAt(AT)).toBe(AT + days * DAY);
    expect(PERIODS[profile].extendDays).toBe(extendDays);
  });

  it('nothing is due later than the longest of them', () => {
    for (let month = 0; month < 12; month += 1) {
      const at = Date.UTC(2027, month, 1);
      for (const { dueAt, extendDays } of Object.values(PERIODS))
        expect(dueAt(at) + extendDays * DAY - at).toBeLessThanOrEqual(LONGEST_MS);
    }
  });
});

describe('what is left', () => {
  const NOW = Date.UTC(2026, 10, 22, 9);
  it.each([
    [30 * DAY - 3, { late: false, unit: 'days', n: 29 }],
    [DAY, { late: false, unit: 'days', n: 1 }],
    [DAY - 1, { late: false, unit: 'hours', n: 23 }],
    [0, { late: false, unit: 'hours', n: 0 }],
    [-1, { late: true, unit: 'hours', n: 0 }],
    [-23 * HOUR, { late: true, unit: 'hours', n: 23 }],
    [-DAY, { late: true, unit: 'days', n: 1 }],
    [-2 * DAY + 1, { late: true, unit: 'days', n: 1 }],
  ] as const)('%d ms', (remainingMs, expected) => {
    expect(untilDue(NOW + remainingMs, NOW)).toEqual(expected);
  });
});
