import { DAY, HOUR } from '../lib/clock.ts';
import { type Group, type GroupsByName, groupsIn, sumOf } from './group-counts.ts';

/** Computes the stacked chart of the overview for its template: heights in pixels, widths in percent. */

export const RANGES = [
  { id: '24h', text: '24 h', step: HOUR, slots: 24, tick: 6, before: 'the 24 hours before' },
  { id: '7d', text: '7 days', step: 6 * HOUR, slots: 28, tick: 8, before: 'the 7 days before' },
  { id: '30d', text: '30 days', step: DAY, slots: 30, tick: 7, before: 'the 30 days before' },
  { id: '90d', text: '90 days', step: DAY, slots: 90, tick: 21, before: 'the 90 days before' },
] as const;
export type Range = (typeof RANGES)[number];

/** The range ends with its last complete slot, and the period before it is as long. */
export function periodOf({ step, slots }: Pick<Range, 'step' | 'slots'>, settled: number) {
  const until = Math.floor(settled / step) * step;
  const length = step * slots;
  return { from: until - length, until, before: until - 2 * length };
}

export type ChartPeriod = ReturnType<typeof periodOf>;

const HEIGHT = 180;
const GAP = 0.14;
/** A pixel of the ground shows between two parts of a bar. */
const SEAM = 1;

/** The next number that begins with 1, 2, 4 or 6, so that the half of an axis is a plain number too. */
function roundUp(n: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, n)));
  return power * ([1, 2, 4, 6, 10].find((digit) => digit * power >= n) ?? 10);
}

/** Spreads each group evenly over its hours. @returns the height of each slot */
function spread(groups: readonly Group[], { from, until }: ChartPeriod, step: number): number[] {
  const rates = Array.from({ length: (until - from) / step }, () => 0);
  for (const group of groups) {
    const perMs = group.n / (group.until - group.from);
    for (const [i, rate] of rates.entries()) {
      const start = from + i * step;
      const overlap = Math.min(group.until, start + step) - Math.max(group.from, start);
      if (overlap > 0) rates[i] = rate + perMs * overlap;
    }
  }
  return rates;
}

/** A count in the table: of the groups that end in its last slot. */
export interface ChartCell {
  readonly slot: number;
  readonly span: number;
  /** Null: the visits since the last group are fewer than a group. */
  readonly n: number | null;
}

/** Slots in which no group ends are counted with the next one in which one does. */
function toCells(groups: readonly Group[], { from, until }: ChartPeriod, step: number): readonly ChartCell[] {
  const slots = (until - from) / step;
  const cells: ChartCell[] = [];
  let next = 0;
  for (let slot = 0; slot < slots; slot += 1) {
    const start = from + slot * step;
    const closing = groupsIn(groups, start, start + step);
    if (closing.length === 0) continue;
    cells.push({ slot: next, span: slot + 1 - next, n: sumOf(closing) });
    next = slot + 1;
  }
  return next < slots ? [...cells, { slot: next, span: slots - next, n: null }] : cells;
}

type Series = Readonly<{ name: string; rates: readonly number[] }>;

function stackBars(series: readonly Series[], slots: number, top: number) {
  const width = 100 / slots;
  return Array.from({ length: slots }, (_, i) => {
    let bottom = HEIGHT;
    const parts = series.flatMap(({ name, rates }) => {
      const height = ((rates[i] ?? 0) / top) * HEIGHT;
      bottom -= height;
      return height < SEAM ? [] : [{ name, y: bottom, height: height - SEAM }];
    });
    return { x: (i + GAP) * width, width: (1 - 2 * GAP) * width, parts, y: bottom };
  });
}

/** A longer group is an average and no peak. */
const PEAK_SLOTS = 3;

const rateOf = ({ from, until, n }: Group): number => n / (until - from);

/** The group that stands out most, if it is at least twice the average of its class. */
function findPeak(groups: readonly Group[], { from, until }: ChartPeriod, step: number): Group | null {
  const [highest] = groups
    .filter((group) => group.until - group.from <= PEAK_SLOTS * step && group.from >= from)
    .toSorted((a, b) => rateOf(b) - rateOf(a));
  if (!highest || groups.length < 3) return null;
  return rateOf(highest) >= (2 * sumOf(groups)) / (until - from) ? highest : null;
}

/**
 * @param names the classes from the ground up
 * @param peakOf the class whose highest hour gets a label
 */
export function layOutChart(
  groups: GroupsByName,
  names: readonly string[],
  { range, period, peakOf }: { readonly range: Range; readonly period: ChartPeriod; readonly peakOf: string },
) {
  const { step, slots } = range;
  const { from, until, before } = period;
  const series = names.map((name) => {
    const ofName = groups.get(name) ?? [];
    return {
      name,
      n: sumOf(groupsIn(ofName, from, until)),
      before: sumOf(groupsIn(ofName, before, from)),
      rates: spread(ofName, period, step),
      cells: toCells(ofName, period, step),
    };
  });
  const sums = Array.from({ length: slots }, (_, i) =>
    series.reduce((sum, { rates }) => sum + (rates[i] ?? 0), 0),
  );
  const top = roundUp(Math.max(1, ...sums));
  const bars = stackBars(series, slots, top);
  const peak = step === HOUR ? findPeak(groupsIn(groups.get(peakOf) ?? [], from, until), period, step) : null;
  const peakSlot = peak === null ? -1 : Math.floor((peak.from - from) / step);
  const total = (key: 'n' | 'before'): number => series.reduce((sum, one) => sum + one[key], 0);
  return {
    slots: Array.from({ length: slots }, (_, i) => from + i * step),
    series,
    bars,
    top,
    height: HEIGHT,
    total: total('n'),
    totalBefore: total('before'),
    peak: peak && { at: peak.from, n: peak.n, x: bars[peakSlot]?.x ?? 0, y: bars[peakSlot]?.y ?? 0 },
  };
}

/** @returns the share of one name in percent with one digit; null without any */
export function percentOf(n: number, total: number): string | null {
  return total === 0 ? null : ((100 * n) / total).toFixed(1);
}
