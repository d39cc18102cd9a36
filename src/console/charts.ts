import type { TallyRow } from '../rights/tally-store.ts';

/** Computes charts for the templates. Counts of few people are shown as a range only. */

const WIDTH = 720;
const HEIGHT = 56;
const GAP = 0.15;

/** A count from 1 to floor - 1 is shown as "under N", because few people are easily identified. */
export function cellOf(n: number, floor: number) {
  return { n, few: n > 0 && n < floor };
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
    const bars = cells.flatMap(({ n, few: isFew }, i) => {
      if (n === 0) return [];
      // A count under the floor is an outline as high as the floor, whatever the number.
      const height = ((isFew ? floor : n) / top) * HEIGHT;
      return [{ x: i * slot + slot * GAP, width: slot * (1 - 2 * GAP), height, few: isFew }];
    });
    const total = row.reduce((sum, n) => sum + n, 0);
    return { name, total: cellOf(total, floor), cells, bars };
  });
  return { slots, series, top, width: WIDTH, height: HEIGHT };
}

/** @returns the start times of the last `count` slots, the current one included */
export function listLastSlots(now: number, step: number, count: number): readonly number[] {
  const last = Math.floor(now / step) * step;
  return Array.from({ length: count }, (_, i) => last - (count - 1 - i) * step);
}
