/**
 * Bounds the requests that a lane works on. Past it a request is refused at the price of reading it: without a bound, a
 * turn of the event loop opens all that arrived during the turn before, and each takes longer than the last. Asked once
 * the body is there, so that who sends slowly holds no place.
 */
export type ConcurrencyLimit = ReturnType<typeof makeConcurrencyLimit>;

/**
 * What a lane works on at once. Half a second of bundles on two processors, and yet three seconds on a machine with a
 * sixth of that: nobody waits longer for an answer, and batches of 400 are full long before.
 */
export const MAX_UNDER_WAY = 1000;

export function makeConcurrencyLimit(places = MAX_UNDER_WAY) {
  let held = 0;
  return {
    isFull: () => held >= places,
    /** Holds a place until the work that began is done, however it ends. */
    hold<Result>(work: Promise<Result>) {
      held += 1;
      return work.finally(() => {
        held -= 1;
      });
    },
  };
}

/**
 * Bounds what reads a whole trail or log: so many at a time for one key, a tenant or a client. One that ends, however it
 * ends, makes room.
 */
export function makeReadWhole(places: number) {
  const held = new Map<string, number>();
  /** @param refusal to be thrown where all places of the key are taken */
  return async <Result>(key: string, work: () => Promise<Result>, refusal: () => Error): Promise<Result> => {
    const others = held.get(key) ?? 0;
    if (others >= places) throw refusal();
    held.set(key, others + 1);
    try {
      return await work();
    } finally {
      const left = (held.get(key) ?? 1) - 1;
      if (left > 0) held.set(key, left);
      else held.delete(key);
    }
  };
}
