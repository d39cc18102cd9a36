/** The one polling loop: runs a task every interval, never twice at once, and complains once per failing spell. */

export interface EveryOptions {
  readonly ms: number;
  /** `setInterval`, or a test's own. */
  readonly timer: (tick: () => void, ms: number) => { close(): unknown; unref(): unknown };
  /** Called for the first failure, and not again until the task has succeeded. */
  readonly onFault: (error: unknown) => void;
  /** Called for the first success after a failure. */
  readonly onRecovered?: (() => void) | undefined;
}

export type Every = ReturnType<typeof every>;

export function every(task: () => Promise<void>, { ms, timer, onFault, onRecovered }: EveryOptions) {
  let running = false;
  let failing = false;
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;

  async function run(): Promise<void> {
    running = true;
    next = null;
    try {
      await task();
      if (failing) onRecovered?.();
      failing = false;
    } catch (error) {
      if (!failing) onFault(error);
      failing = true;
      throw error;
    } finally {
      running = false;
    }
  }
  function soon(): Promise<void> {
    next ??= last
      .catch(() => {})
      .then(() => {
        last = run();
        return last;
      });
    return next;
  }
  const ticking = timer(() => {
    // A run that hangs is waited for, not joined by more.
    if (!running && next === null) soon().catch(() => {});
  }, ms);
  ticking.unref();
  return {
    /** A run that begins after this call, and after one under way; callers at one time share it. @throws what the task throws */
    soon,
    /** Resolves when nothing runs any more. */
    stop: async () => {
      ticking.close();
      await Promise.allSettled([next]);
      await Promise.allSettled([last]);
    },
  };
}
