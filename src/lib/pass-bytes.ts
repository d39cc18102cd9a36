import { createHash } from 'node:crypto';

/** Streams of bytes: counts them, and cuts them into pieces of one size. */

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
  /** Call `result` once all bytes have passed. */
  return { pass, result: () => ({ size, sha256: hash.digest('hex') }) };
}

const BATCH = 64 * 1024;

/** Joins short texts: a stream takes the same time for a line as for a thousand. */
export async function* joinLines(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let waiting = '';
  for await (const line of lines) {
    waiting += line;
    if (waiting.length < BATCH) continue;
    yield waiting;
    waiting = '';
  }
  if (waiting !== '') yield waiting;
}

/** Cuts bytes into pieces of one size; the last may be shorter. No bytes make one empty piece. */
export async function* pieces(source: AsyncIterable<Uint8Array>, size: number) {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let index = 0;
  for await (const chunk of source) {
    waiting.push(chunk);
    waitingBytes += chunk.length;
    // Only one byte more than a piece shows that it is not the last.
    if (waitingBytes <= size) continue;
    let rest = Buffer.concat(waiting, waitingBytes);
    while (rest.length > size) {
      yield { bytes: rest.subarray(0, size), index, last: false };
      index += 1;
      rest = rest.subarray(size);
    }
    waiting = [rest];
    waitingBytes = rest.length;
  }
  yield { bytes: Buffer.concat(waiting, waitingBytes), index, last: true };
}
