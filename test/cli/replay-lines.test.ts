import { expect, it } from 'vitest';
import { splitLines } from '../../src/cli/replay/lines.ts';

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size);
}

async function linesOf(text: string, size: number): Promise<{ text: string; bytes: number }[]> {
  const lines = [];
  for await (const line of splitLines(chunksOf(Buffer.from(text), size))) lines.push(line);
  return lines;
}

it.each([1, 2, 3, 7, 1000])('splits at LF and CRLF, wherever a chunk of %i bytes ends', async (size) => {
  const lines = await linesOf('{"a":"ä€😀"}\r\n\n  \nlast \u2028 one', size);
  expect(lines.map((line) => line.text)).toEqual(['{"a":"ä€😀"}', '', '  ', 'last \u2028 one']);
  expect(lines.map((line) => line.bytes)).toEqual([19, 20, 23, 35]);
});

it('counts a last line that is ended, and nothing after it', async () => {
  expect(await linesOf('a\nb\n', 3)).toEqual([
    { text: 'a', bytes: 2 },
    { text: 'b', bytes: 4 },
  ]);
  expect(await linesOf('', 3)).toEqual([]);
});

it('asks for a chunk only when every line of the last was taken', async () => {
  let pulled = 0;
  async function* source(): AsyncGenerator<Buffer> {
    for (let i = 0; i < 1000; i += 1) {
      pulled += 1;
      yield Buffer.from('one\ntwo\n');
    }
  }
  let takenCount = 0;
  for await (const _ of splitLines(source())) {
    takenCount += 1;
    if (pulled !== Math.ceil(takenCount / 2))
      throw new Error(`${pulled} chunks were read for ${takenCount} lines`);
  }
  expect(takenCount).toBe(2000);
});
