import type { TallyRow } from '../rights/tally-store.ts';
import { say } from './words.ts';

/** Computes charts and counts for the templates. A count of few people is hidden, also from subtraction. */

const WIDTH = 720;
const HEIGHT = 56;
const GAP = 0.15;

/** A count as a page shows it. `few`: under n; `least`: at least n; else n exactly. */
export interface ShownCount {
  readonly n: number;
  readonly few: boolean;
  readonly least: boolean;
}

/** A count from 1 to floor - 1 is shown as "under N", because few people are easily identified. */
export function cellOf(n: number, floor: number): ShownCount {
  const isFew = n > 0 && n < floor;
  return { n: isFew ? floor : n, few: isFew, least: false };
}

/**
 * Shows the sum of counts that are shown next to it, some of them hidden. The sum is exact only if each
 * hidden count can still be anything from 1 to floor - 1; otherwise a reader would subtract what is shown and
 * learn about the rest.
 */
function sumOf(counts: readonly number[], floor: number): ShownCount {
  const sum = counts.reduce((all, n) => all + n, 0);
  const hidden = counts.filter((n) => cellOf(n, floor).few);
  const hiddenSum = hidden.reduce((all, n) => all + n, 0);
  const otherCells = hidden.length - 1;
  if (hidden.length === 0 || sum < floor) return cellOf(sum, floor);
  const largestFew = floor - 1;
  if (hiddenSum >= largestFew + otherCells && hiddenSum <= largestFew * otherCells + 1)
    return cellOf(sum, floor);
  return { n: sum - hiddenSum + (hiddenSum >= floor ? floor : 0), few: false, least: true };
}

/** Sums counts that are shown already. */
function sumOfShown(
  totals: readonly { readonly sum: number; readonly total: ShownCount }[],
  floor: number,
): ShownCount {
  if (!totals.some(({ total }) => total.least))
    return sumOf(
      totals.map(({ sum }) => sum),
      floor,
    );
  const n = totals.reduce((all, { total }) => all + (total.few ? 0 : total.n), 0);
  return { n, few: false, least: true };
}

/**
 * Computes one row of bars per name, all with the same scale.
 * @param slots the time at which each bar begins
 */
export function layOutBars(
  counts: readonly TallyRow[],
  names: readonly string[],
  { slots, step, floor }: Readonly<Record<'step' | 'floor', number>> & { readonly slots: readonly number[] },
) {
  const first = slots[0] ?? 0;
  const sums = new Map(names.map((name) => [name, slots.map(() => 0)]));
  for (const { hour, name, n } of counts) {
    const row = sums.get(name);
    const at = Math.floor((hour - first) / step);
    if (row && at >= 0 && at < row.length) row[at] = (row[at] ?? 0) + n;
  }
  const largest = Math.max(0, ...[...sums.values()].flat());
  const top = Math.max(largest, floor);
  const slot = WIDTH / Math.max(1, slots.length);
  const series = names.map((name) => {
    const row = sums.get(name) ?? [];
    const cells = row.map((n) => cellOf(n, floor));
    // A count under the floor is an outline as high as the floor, whatever the number.
    const bars = cells.flatMap(({ n, few: isFew }, i) => {
      if (n === 0) return [];
      const height = (n / top) * HEIGHT;
      return [{ x: i * slot + slot * GAP, width: slot * (1 - 2 * GAP), height, few: isFew }];
    });
    const sum = row.reduce((all, n) => all + n, 0);
    return { name, sum, total: sumOf(row, floor), cells, bars };
  });
  return { slots, series, total: sumOfShown(series, floor), top, width: WIDTH, height: HEIGHT };
}

/** @returns the start times of the last `count` slots, the current one included */
export function listLastSlots(now: number, step: number, count: number): readonly number[] {
  const last = Math.floor(now / step) * step;
  return Array.from({ length: count }, (_, i) => last - (count - 1 - i) * step);
}

/**
 * Shows a share of visits. The rest is a count too: of 120 visits, 107 with a signal would tell that 13 came
 * without.
 * @returns a sentence with its number of days
 */
export function shareOf(n: number, all: number, floor: number, days: number): string {
  const total = cellOf(all, floor);
  if (total.few) return say('fewer than {floor} in {days} days', { floor, days });
  const [part, rest] = [cellOf(n, floor), cellOf(all - n, floor)];
  const share = part.few
    ? rest.few
      ? 'some'
      : say('fewer than {floor}', { floor })
    : rest.few
      ? 'nearly all'
      : say('{n}', { n });
  return say('{share} of {all} in {days} days', { share, all, days });
}

/**
 * Rounds down to a power of ten: the exact number of bundles less the visits that are shown would be the
 * hidden ones.
 */
export function roughOf(n: number, floor: number): string {
  if (n === 0) return '0';
  if (n < floor) return say('under {floor}', { floor });
  return say('at least {n}', { n: Math.max(floor, 10 ** Math.floor(Math.log10(n))) });
}
