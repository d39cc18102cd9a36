/** The values of one statement: both databases limit its parameters. */
const CHUNK = 500;

export function* chunksOf<T>(values: readonly T[], size = CHUNK): Generator<readonly T[]> {
  for (let i = 0; i < values.length; i += size) yield values.slice(i, i + size);
}

export async function inChunks<T>(
  values: readonly T[],
  work: (chunk: readonly T[]) => PromiseLike<unknown>,
  size = CHUNK,
): Promise<void> {
  for (const chunk of chunksOf(values, size)) await work(chunk);
}

/**
 * Yields page after page, until one is not full.
 * @param read returns the page after this row; undefined: the first page
 */
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
 * A cache for values of short use: each stays for at least `ms` after it was set or read, and at most about
 * twice as long. It has no timer.
 * @param max entries within `ms`
 * @param now milliseconds that no clock change affects
 */
export function createRecent<Value>(ms: number, max: number, now: () => number) {
  let current = new Map<string, Value>();
  let previous = new Map<string, Value>();
  let startedAt = now();
  function rotate(): void {
    const age = now() - startedAt;
    if (age < ms) return;
    previous = age < 2 * ms ? current : new Map<string, Value>();
    current = new Map<string, Value>();
    startedAt = now();
  }
  function setRecent(key: string, value: Value): boolean {
    rotate();
    if (!current.has(key) && current.size >= max) return false;
    current.set(key, value);
    return true;
  }
  return {
    get(key: string) {
      rotate();
      const found = current.get(key);
      if (found !== undefined) return found;
      const older = previous.get(key);
      if (older !== undefined) setRecent(key, older);
      return older;
    },
    /** False when it is full: the value is not stored. */
    set: setRecent,
  };
}

/** A cache of at most `max` entries. It never forgets the `max / 2` that were set or read last. */
export function createBounded<Value>(max: number) {
  let current = new Map<string, Value>();
  let previous = new Map<string, Value>();
  function setBounded(key: string, value: Value): void {
    if (current.size >= max / 2 && !current.has(key)) {
      previous = current;
      current = new Map();
    }
    current.set(key, value);
  }
  return {
    get(key: string) {
      const found = current.get(key);
      if (found !== undefined) return found;
      const older = previous.get(key);
      if (older !== undefined) setBounded(key, older);
      return older;
    },
    set: setBounded,
  };
}

/**
 * A list of things that come and go all the time. It is not a Set: V8 links each table that a Set outgrows to
 * the next, so an entry of an old one keeps later entries alive until a full collection, measured as half of
 * the collector's work.
 */
export function createSlotList<Item>() {
  const places: (Item | null)[] = [];
  const free: number[] = [];
  return {
    /** @returns a function that removes the item; a second call does nothing */
    add(item: Item) {
      const place = free.pop() ?? places.length;
      places[place] = item;
      let isListed = true;
      return () => {
        if (!isListed) return;
        isListed = false;
        places[place] = null;
        free.push(place);
      };
    },
    list: () => places.filter((item) => item !== null),
  };
}

/** Makes the value of each key once. Use it for few keys: it forgets none. */
export function memoised<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const values = new Map<Key, Value>();
  return (key) => {
    const value = values.get(key) ?? make(key);
    values.set(key, value);
    return value;
  };
}

/** Runs `work` with a resource and always closes it afterwards. */
export async function withClosing<Opened extends { close(): Promise<unknown> }, T>(
  pending: Promise<Opened>,
  work: (opened: Opened) => Promise<T>,
): Promise<T> {
  const opened = await pending;
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}
