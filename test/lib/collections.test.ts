import { describe, expect, it } from 'vitest';
import {
  chunksOf,
  createBounded,
  createRecent,
  createSlotList,
  inChunks,
} from '../../src/lib/collections.ts';

describe('chunks', () => {
  const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

  it.each([
    [0, []],
    [500, [500]],
    [501, [500, 1]],
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
});

describe('what is kept for a while', () => {
  it('is there for the whole time, gone after twice as long, and stays while it is read', () => {
    let now = 99;
    const recent = createRecent<number>(100, 10, () => now);
    recent.set('late', 1);
    now = 198;
    expect(recent.get('late')).toBe(1);
    now = 398;
    expect(recent.get('late')).toBeUndefined();
    recent.set('read', 1);
    for (const end = now + 1000; now < end; now += 90) expect(recent.get('read')).toBe(1);
  });

  it('is never more than it may be, and what is there may change', () => {
    let now = 0;
    const recent = createRecent<number>(100, 2, () => now);
    const stored = (['a', 'b', 'c', 'a'] as const).map((key, i) => recent.set(key, i));
    expect(stored).toEqual([true, true, false, true]);
    expect([recent.get('a'), recent.get('c')]).toEqual([3, undefined]);
    now = 100;
    expect(recent.set('c', 1)).toBe(true);
  });
});

describe('a bounded cache', () => {
  it('has the half that was set or read last, and never more than its size', () => {
    const cache = createBounded<number>(10);
    cache.set('read', -1);
    const numbers = Array.from({ length: 100 }, (_, i) => i);
    for (const i of numbers) {
      cache.set(`${i}`, i);
      expect(cache.get('read')).toBe(-1);
    }
    // Each look is a use: the oldest are looked at last.
    const stored = numbers.reverse().filter((i) => cache.get(`${i}`) !== undefined);
    expect(stored.slice(0, 4)).toEqual([99, 98, 97, 96]);
    expect(stored.length).toBeLessThan(10);
  });

  it('a value that is set again is the new one, in whichever half the old one is', () => {
    const cache = createBounded<number>(4);
    for (const [key, value] of [
      ['a', 1],
      ['b', 1],
      ['c', 1],
      ['a', 2],
      ['c', 2],
    ] as const)
      cache.set(key, value);
    expect([cache.get('a'), cache.get('c')]).toEqual([2, 2]);
  });
});

describe('a slot list', () => {
  it('lists what was added and not taken off; a place that is another by now stays', () => {
    const slots = createSlotList<string>();
    const [a, b] = [slots.add('a'), slots.add('b')];
    slots.add('a');
    b();
    expect(slots.list()).toEqual(['a', 'a']);
    a();
    slots.add('second');
    a();
    expect(slots.list().sort()).toEqual(['a', 'second']);
  });

  it('has as many places as things were there at once', () => {
    const slots = createSlotList<number>();
    for (let i = 0; i < 10_000; i += 1) slots.add(i)();
    const last = [1, 2, 3].map((i) => slots.add(i));
    expect(slots.list()).toEqual([1, 2, 3]);
    for (const off of last) off();
    expect(slots.list()).toEqual([]);
  });
});
