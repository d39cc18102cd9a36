const MAX_IN = 500;

/** Pieces of a size that one statement takes, one after the other. */
export async function inChunks<T>(
  ids: readonly T[],
  work: (chunk: readonly T[]) => PromiseLike<unknown>,
): Promise<void> {
  for (let i = 0; i < ids.length; i += MAX_IN) await work(ids.slice(i, i + MAX_IN));
}
