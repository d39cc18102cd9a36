/** What fails in the page (a tag manager, a patched DOM, Trusted Types) is the page's: it stops neither a choice nor what comes next. */
export function guarded(work: () => void): void {
  try {
    work();
  } catch (error) {
    reportError(error);
  }
}

/** What `look` gives; undefined where the browser forbids it, or what it has there cannot be read. */
export function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
