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

/** Page after page, until one is not full. @param read the page behind this row; the first one for none */
export async function* pagesBy<T>(
  size: number,
  read: (after: T | undefined) => Promise<readonly T[]>,
): AsyncGenerator<readonly T[]> {
  for (let last: T | undefined; ; ) {
    const page: readonly T[] = await read(last);
    if (page.length > 0) yield page;
    if (page.length < size) return;
    last = page.at(-1);
  }
}
