/**
 * Reports errors of the page (a tag manager, a patched DOM, Trusted Types): they stop neither a choice nor
 * later steps.
 */
export function guarded(work: () => void): void {
  try {
    work();
  } catch (error) {
    reportError(error);
  }
}

/** The result of `look`; undefined if the browser forbids it, or the value cannot be read. */
export function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
