import { describe, expect, it } from 'vitest';
import { formatTable, type Goal, isMissed, type Row, statusOf } from '../../bench/lib/report.ts';
import { compare, type Measured, tailRow } from '../../bench/lib/subjects.ts';

const makeRow = (value: number, goal: Goal | null): Row => ({
  name: 'a',
  value,
  unit: 'x',
  goal,
  details: {},
});

const makeRun = (factor: number): Measured => ({
  cpuMicros: 100 * factor,
  rate: 1000 / factor,
  rssMb: 50 * factor,
  p50: factor,
  p99: 4 * factor,
  p999: 9 * factor,
});

describe('a goal', () => {
  it.each([
    ['at most, and is', 1.6, { atMost: 1.6 }, 'ok', false],
    ['at most, and is more', 1.61, { atMost: 1.6 }, 'over', true],
    ['at least, and is', 1.6, { atLeast: 1.6 }, 'ok', false],
    ['at least, and is less', 1.59, { atLeast: 1.6 }, 'under', true],
    ['none', 9, null, '-', false],
  ] as const)('is %s', (_why, value, goal, status, missed) => {
    expect(statusOf(makeRow(value, goal))).toBe(status);
    expect(isMissed(makeRow(value, goal))).toBe(missed);
  });
});

describe('formatTable', () => {
  it('puts the other ratios beside the value, and nothing where there are none', () => {
    const wide: Row = { ...makeRow(1.5, { atLeast: 1 }), beside: { rate: 0.5, rss: 2 } };
    const [head, first, second] = formatTable([wide, makeRow(2, null)]).split('\n');
    expect(head).toMatch(/^NAME +VALUE +GOAL +RATE +P50 +P99 +P99\.9 +RSS$/);
    expect(first).toMatch(/^a +1\.50 x +>= 1 +ok +0\.50 +2\.00$/);
    expect(second).toMatch(/^a +2\.00 x +- +-$/);
  });

  it('says why there is no value', () => {
    const row = compare(
      { name: 'a', pair: ['gpd', 'peer'], unit: 'x', goal: { atMost: 1 } },
      new Map(),
      new Map([['peer', '--peers']]),
    );
    expect(formatTable([row])).toContain('NOT RUN: peer: --peers');
    expect(isMissed(row)).toBe(false);
  });
});

describe('compare', () => {
  it('is the median of the ratios of the rounds, not the ratio of medians', () => {
    const results = new Map([
      ['gpd', [makeRun(2), makeRun(30), makeRun(4)]],
      ['floor', [makeRun(1), makeRun(10), makeRun(1)]],
    ]);
    const row = compare({ name: 'a', pair: ['gpd', 'floor'], unit: 'x floor', goal: null }, results);
    expect(row.value).toBe(3);
    expect(row.beside).toMatchObject({ p50: 3, p99: 3, p999: 3, rss: 3 });
    expect(row.beside?.rate).toBeCloseTo(1 / 3);
  });

  it('tells the slow ones beside the ordinary ones of the same round', () => {
    expect(tailRow('a', [makeRun(1), makeRun(7)])).toMatchObject({ value: 4, goal: { atMost: 5 } });
  });
});
