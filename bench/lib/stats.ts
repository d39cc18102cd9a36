/** @throws {Error} for an empty list */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const low = sorted[Math.floor((sorted.length - 1) / 2)];
  const high = sorted[Math.ceil((sorted.length - 1) / 2)];
  if (low === undefined || high === undefined) throw new Error('the median of nothing');
  return (low + high) / 2;
}

/** @returns the median ratio of pairs that ran one after the other, so that a slow machine slows both halves of a pair */
export function pairedRatio(tops: readonly number[], bottoms: readonly number[]): number {
  return median(tops.map((top, i) => top / (bottoms[i] ?? Number.NaN)));
}

/** Seeded random numbers (mulberry32): the same seed gives the same devices and visits. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
