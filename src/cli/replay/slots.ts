export interface Slots {
  /** Starts `work`; resolves when there is room for the next. @throws what any work before threw */
  start(work: () => Promise<void>): Promise<void>;
  /** Resolves when nothing is under way. @throws what any work threw */
  drained(): Promise<void>;
}

/**
 * So much work at once, and nothing remembered of what is done: racing a set of promises leaves a reaction in each of
 * them for every turn that it waits.
 */
export function makeSlots(concurrency: number): Slots {
  let running = 0;
  let failure: { readonly error: unknown } | null = null;
  let wake = (): void => {};

  const one = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      failure ??= { error };
    }
    running -= 1;
    wake();
  };
  const fewerThan = async (limit: number): Promise<void> => {
    while (failure === null && running >= limit) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    if (failure !== null) throw failure.error;
  };
  return {
    start(work) {
      running += 1;
      void one(work);
      return fewerThan(concurrency);
    },
    drained: () => fewerThan(1),
  };
}
