import { describe, expect, it } from 'vitest';
import { layOutChart, periodOf, RANGES } from '../../src/console/charts.ts';
import { groupByName, groupsIn, settledUntil, startOfSpan } from '../../src/console/group-counts.ts';
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts';
import type { TallyRow } from '../../src/rights/tally-store.ts';
import { NOW } from '../support/make.ts';
import { fc } from '../support/property.ts';

/** ADR 0105: what is shown of the visits never tells a count of few people, whatever is subtracted. */

const FLOOR = 50;
const NAMES = ['human', 'undeclared_automation'];
const DAYS = 200;
const START = Math.floor(NOW / HOUR) * HOUR - DAYS * DAY;

type Rows = readonly TallyRow[];

/** Numbers from 0 to 1 that follow from a seed (mulberry32). */
function numbersOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function forAll(numRuns: number, check: (rows: Rows) => void): void {
  const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
  fc.assert(
    fc.property(seeds, (seed) => check(randomRows(numbersOf(seed)))),
    { numRuns, endOnFailure: true },
  );
}

/** Busy and quiet days, hours without anybody, and a class that is rare. */
function randomRows(next: () => number): Rows {
  const rows: TallyRow[] = [];
  for (const [k, name] of NAMES.entries()) {
    for (let i = 0; i < DAYS * 24; i += 1) {
      const busy = Math.floor(i / (24 * 7)) % 3 === 0 ? 200 : 12;
      const n = next() < 0.3 ? 0 : Math.floor((next() * busy) / (k + 1));
      if (n > 0) rows.push({ hour: START + i * HOUR, name, n });
    }
  }
  return rows.toSorted((a, b) => a.hour - b.hour);
}

/** One page load: the groups that it reads, and the chart that it shows. */
function load(rows: Rows, now: number, range: (typeof RANGES)[number]) {
  const settled = settledUntil(now) ?? 0;
  const period = periodOf(range, settled);
  const read = rows.filter(({ hour }) => hour >= startOfSpan(period.before));
  const groups = groupByName(read, NAMES, { floor: FLOOR, until: settled });
  return {
    period,
    groups,
    chart: layOutChart(groups, NAMES, { range, period, peakOf: 'undeclared_automation' }),
  };
}

/** Page loads of three days, an hour or more apart, in each range. */
const TIMES = [0, 1, 2, 5, 13, 24, 25, 49, 70].map((hours) => NOW + 9 * MINUTE - hours * HOUR);
const loads = (rows: Rows) => TIMES.flatMap((now) => RANGES.map((range) => load(rows, now, range)));

/** Joins moments between which a sum was shown: an attacker adds and subtracts such sums, and learns no others. */
function createKnown() {
  const parents = new Map<number, number>();
  const find = (at: number): number => {
    const parent = parents.get(at) ?? at;
    return parent === at ? at : find(parent);
  };
  return {
    find,
    join: (from: number, until: number) => parents.set(find(from), find(until)),
    moments: () => new Set([...parents.keys(), ...parents.values()]),
  };
}

/** Sums up to each moment, to read the true count between two. */
function truth(rows: Rows, name: string) {
  const sums = [0];
  const counts = new Map(rows.filter((row) => row.name === name).map(({ hour, n }) => [hour, n]));
  for (let i = 0; i < DAYS * 24 + 1; i += 1) sums.push((sums[i] ?? 0) + (counts.get(START + i * HOUR) ?? 0));
  return (from: number, until: number): number =>
    (sums[(until - START) / HOUR] ?? 0) - (sums[(from - START) / HOUR] ?? 0);
}

describe('counts in groups', () => {
  it('no sum or difference of numbers, over all ranges and three days of page loads, is a count of few people', () => {
    forAll(5, (rows) => {
      const all = loads(rows);
      for (const name of NAMES) {
        const count = truth(rows, name);
        const known = createKnown();
        const shown = all.flatMap(({ groups }) => groups.get(name) ?? []);
        for (const { from, until, n } of new Map(
          shown.map((group) => [JSON.stringify(group), group]),
        ).values()) {
          expect(n).toBe(count(from, until));
          known.join(from, until);
        }
        const moments = [...known.moments()].sort((a, b) => a - b);
        for (const [i, from] of moments.entries())
          for (const until of moments.slice(i + 1, i + 30)) {
            if (known.find(from) !== known.find(until)) continue;
            const n = count(from, until);
            expect(n === 0 || n >= FLOOR, `${name}: ${n}`).toBe(true);
          }
      }
    });
  });

  it('each number of a page is a sum of groups, and each cell of its table is none of few', () => {
    forAll(3, (rows) => {
      for (const { period, groups, chart } of loads(rows))
        for (const { name, n, before, cells } of chart.series) {
          const ofName = groups.get(name) ?? [];
          const sum = (from: number, until: number) =>
            groupsIn(ofName, from, until).reduce((total, group) => total + group.n, 0);
          expect([n, before]).toEqual([sum(period.from, period.until), sum(period.before, period.from)]);
          expect(cells.reduce((total, cell) => total + (cell.n ?? 0), 0)).toBe(n);
          for (const cell of cells) expect(cell.n === null || cell.n >= FLOOR).toBe(true);
          expect(cells.reduce((total, { span }) => total + span, 0)).toBe(chart.slots.length);
        }
    });
  });

  it('hours that are not shown could have been otherwise: every page looks the same', () => {
    forAll(3, (rows) => {
      const [newest] = loads(rows);
      const twin = rows.map((row) => ({ ...row }));
      const at = (name: string, hour: number) => twin.find((row) => row.name === name && row.hour === hour);
      for (const name of NAMES)
        for (const { from, until } of newest?.groups.get(name) ?? []) {
          const [first, last] = [at(name, from), at(name, until - HOUR)];
          if (!first || !last || first === last) continue;
          // All but one of the first hour came in the last.
          Object.assign(last, { n: last.n + first.n - 1 });
          Object.assign(first, { n: 1 });
        }
      expect(twin).not.toEqual(rows);
      expect(loads(twin).map(({ chart }) => chart)).toEqual(loads(rows).map(({ chart }) => chart));
    });
  });

  it('a group never changes: what an earlier page load showed, a later one shows too', () => {
    forAll(3, (rows) => {
      const [range] = RANGES;
      for (const name of NAMES) {
        const earlier = load(rows, NOW - 30 * HOUR, range).groups.get(name) ?? [];
        const later = load(rows, NOW, range).groups.get(name) ?? [];
        const shared = earlier.filter(({ from }) => from >= (later[0]?.from ?? 0));
        expect(later).toEqual(expect.arrayContaining([...shared]));
      }
    });
  });

  it('an hour that still counts is in no group', () => {
    const hour = Math.floor(NOW / HOUR) * HOUR;
    const rows = [{ hour, name: 'human', n: 500 }];
    const groupsAt = (countedUntil: number) =>
      groupByName(rows, NAMES, { floor: FLOOR, until: settledUntil(countedUntil) ?? 0 }).get('human');
    expect(groupsAt(hour + HOUR)).toEqual([]);
    expect(groupsAt(hour + HOUR + 5 * MINUTE)).toEqual([{ from: hour, until: hour + HOUR, n: 500 }]);
  });
});
