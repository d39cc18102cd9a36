/** What `look` gives; `otherwise` where it throws, whatever it throws. */
export function orElse<T, Otherwise>(look: () => T, otherwise: Otherwise): T | Otherwise {
  try {
    return look();
  } catch {
    return otherwise;
  }
}

/** Whether `look` ends without throwing. */
export function works(look: () => unknown): boolean {
  return orElse(() => [look()], null) !== null;
}

/** Makes the value of each key once. For few keys: none is forgotten. */
export function memoised<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const known = new Map<Key, Value>();
  return (key) => {
    const value = known.get(key) ?? make(key);
    known.set(key, value);
    return value;
  };
}

/** Works with what was opened, and closes it whatever happens. */
export async function closing<Opened extends { close(): Promise<unknown> }, T>(
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

type Bound<Deps, Functions> = {
  readonly [Name in keyof Functions]: Functions[Name] extends (
    deps: Deps,
    ...rest: infer Rest
  ) => infer Result
    ? (...rest: Rest) => Result
    : never;
};

/** The operations of a service, handed what they need. */
export const bound = <Deps, Functions extends Record<string, (deps: Deps, ...rest: never[]) => unknown>>(
  deps: Deps,
  functions: Functions,
): Bound<Deps, Functions> =>
  Object.fromEntries(Object.entries(functions).map(([name, run]) => [name, run.bind(null, deps)])) as Bound<
    Deps,
    Functions
  >;
