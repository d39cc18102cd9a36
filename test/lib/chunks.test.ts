import { expect, it } from 'vitest';
import { chunksOf, inChunks } from '../../src/lib/collections.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

it.each([
  [0, []],
  [1, [1]],
  [500, [500]],
  [501, [500, 1]],
  [1250, [500, 500, 250]],
])('%i values are chunks of %j, each value once and in order', (count, sizes) => {
  const chunks = [...chunksOf(numbers(count))];
  expect(chunks.map(({ length }) => length)).toEqual(sizes);
  expect(chunks.flat()).toEqual(numbers(count));
});

it('a size can be given; work on a chunk begins when the one before it is done', async () => {
  const events: string[] = [];
  const work = async (chunk: readonly number[]): Promise<void> => {
    events.push(`begin ${chunk.join()}`);
    await new Promise((resolve) => void setImmediate(resolve));
    events.push(`end ${chunk.join()}`);
  };
  await inChunks(numbers(3), work, 2);
  expect(events).toEqual(['begin 0,1', 'end 0,1', 'begin 2', 'end 2']);
});
