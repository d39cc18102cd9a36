/** The result of `run`, or `fallback` if it throws. */
export function tryOr<T, Otherwise>(run: () => T, fallback: Otherwise): T | Otherwise {
  try {
    return run();
  } catch {
    return fallback;
  }
}

/** True if `run` does not throw. */
export function succeeds(run: () => unknown): boolean {
  return tryOr(() => [run()], null) !== null;
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
