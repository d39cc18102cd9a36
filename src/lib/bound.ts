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
