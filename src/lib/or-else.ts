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
