import type { TallyRow } from '../rights/tally-store.ts';

/** Charts as numbers for a template: bars from zero, direct labels, and no count of few people. */

const WIDTH = 720;
const HEIGHT = 56;
const GAP = 0.15;

/** A count under the floor is shown as "under N": few people, 1 to floor - 1, are easily identified. */
export function cellOf(n: number, floor: number) {
  return { n, few: n > 0 && n < floor };
}

/**
 * Small multiples: a row of bars a name, one scale for all of them.
 * @param slots when each bar begins
 */
export function barChart(
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
  // Every row of bars has this scale.
  const top = Math.max(largest, floor);
  const slot = WIDTH / Math.max(1, slots.length);
  const series = names.map((name) => {
    const row = sums.get(name) ?? [];
    const cells = row.map((n) => cellOf(n, floor));
    const bars = cells.flatMap(({ n, few }, i) => {
      if (n === 0) return [];
      // Somewhere between one and the floor: an outline up to the floor, whatever the number.
      const height = ((few ? floor : n) / top) * HEIGHT;
      return [{ x: i * slot + slot * GAP, width: slot * (1 - 2 * GAP), height, few }];
    });
    const total = row.reduce((sum, n) => sum + n, 0);
    return { name, total: cellOf(total, floor), cells, bars };
  });
  return { slots, series, top, width: WIDTH, height: HEIGHT };
}

/** When the last `count` of them began, the running one among them. */
export function lastSlots(now: number, step: number, count: number): readonly number[] {
  const last = Math.floor(now / step) * step;
  return Array.from({ length: count }, (_, i) => last - (count - 1 - i) * step);
}
