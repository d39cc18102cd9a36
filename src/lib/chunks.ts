/** Values that one statement takes: both databases limit its parameters. */
const CHUNK = 500;

export function* chunksOf<T>(values: readonly T[], size = CHUNK): Generator<readonly T[]> {
  for (let i = 0; i < values.length; i += size) yield values.slice(i, i + size);
}

/** One chunk after the other. */
export async function inChunks<T>(
  values: readonly T[],
  work: (chunk: readonly T[]) => PromiseLike<unknown>,
  size = CHUNK,
): Promise<void> {
  for (const chunk of chunksOf(values, size)) await work(chunk);
}
