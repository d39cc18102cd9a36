import { createHash } from 'node:crypto';

export type Bytes = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

/** Passes bytes through, counting and hashing them. `onBytes` gets the number of bytes so far. */
export function meter(onBytes: (done: number) => void = () => {}) {
  const hash = createHash('sha256');
  let size = 0;
  async function* pass(source: Bytes): AsyncGenerator<Uint8Array> {
    for await (const part of source) {
      const chunk = typeof part === 'string' ? Buffer.from(part) : part;
      hash.update(chunk);
      size += chunk.length;
      onBytes(size);
      yield chunk;
    }
  }
  /** `result`: once all has passed. */
  return { pass, result: () => ({ size, sha256: hash.digest('hex') }) };
}

/** Pieces of one size, of which the last may be shorter; one piece for nothing at all. */
export async function* pieces(source: AsyncIterable<Uint8Array>, size: number) {
  let waiting: Uint8Array[] = [];
  let held = 0;
  let index = 0;
  for await (const chunk of source) {
    waiting.push(chunk);
    held += chunk.length;
    // One byte more than a piece has to be there: only then it is not the last.
    if (held <= size) continue;
    let rest = Buffer.concat(waiting, held);
    while (rest.length > size) {
      yield { bytes: rest.subarray(0, size), index, last: false };
      index += 1;
      rest = rest.subarray(size);
    }
    waiting = [rest];
    held = rest.length;
  }
  yield { bytes: Buffer.concat(waiting, held), index, last: true };
}
