/** Values that one statement takes: both databases limit its parameters. */
const CHUNK = 500;

export function* chunksOf<T>(values: readonly T[], size = CHUNK): Generator<readonly T[]> {
  for (let i = 0; i < values.length; i += size) yield values.slice(i, i + size);
}

/** One chunk after the other. */
export async function inChunks<T>(
  values: readonly T[],
  work: (chunk: readonly T[]) => PromiseLike<unknown>,
  size = CHUNK,
): Promise<void> {
  for (const chunk of chunksOf(values, size)) await work(chunk);
}

/** Page after page, until one is not full. @param read the page behind this row; the first one for none */
export async function* pagesBy<T>(
  size: number,
  read: (after: T | undefined) => Promise<readonly T[]>,
): AsyncGenerator<readonly T[]> {
  for (let last: T | undefined; ; ) {
    const page: readonly T[] = await read(last);
    if (page.length > 0) yield page;
    if (page.length < size) return;
    last = page.at(-1);
  }
}

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

/**
 * Things that come and go all the time, and can be listed. Not a Set: V8 links each table that a Set outgrows, or empties by deletions, to its successor. Once one of them is in
 * the old generation, whatever was in a later one survives until a full collection; with a Set of the answers under way
 * that was every answer, and half of the collector's work.
 */
export function makeSlotList<Item>() {
  const places: (Item | null)[] = [];
  const free: number[] = [];
  return {
    /** @returns takes it off again, once */
    add(item: Item) {
      const place = free.pop() ?? places.length;
      places[place] = item;
      let on = true;
      return () => {
        if (!on) return;
        on = false;
        places[place] = null;
        free.push(place);
      };
    },
    list: () => places.filter((item) => item !== null),
  };
}
