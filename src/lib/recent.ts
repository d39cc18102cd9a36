/**
 * Values that are of use for a short while only: each is kept for at least `ms` after it was set or read, and forgotten by
 * the time of twice as long, without a timer.
 * @param most so many within `ms`
 * @param now milliseconds that no clock change touches
 */
export function makeRecent<Value>(ms: number, most: number, now: () => number) {
  let young = new Map<string, Value>();
  let old = new Map<string, Value>();
  let begun = now();
  function turnOver(): void {
    const age = now() - begun;
    if (age < ms) return;
    old = age < 2 * ms ? young : new Map<string, Value>();
    young = new Map<string, Value>();
    begun = now();
  }
  function set(key: string, value: Value): boolean {
    turnOver();
    if (!young.has(key) && young.size >= most) return false;
    young.set(key, value);
    return true;
  }
  return {
    get(key: string) {
      turnOver();
      const found = young.get(key);
      if (found !== undefined) return found;
      const kept = old.get(key);
      if (kept !== undefined) set(key, kept);
      return kept;
    },
    /** False when it holds as many as it may: nothing is kept then. */
    set,
  };
}
