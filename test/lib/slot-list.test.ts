import { describe, expect, it } from 'vitest';
import { createSlotList } from '../../src/lib/collections.ts';

describe('a slot list', () => {
  it('lists what was added and not taken off', () => {
    const slots = createSlotList<string>();
    const [a, b] = [slots.add('a'), slots.add('b')];
    slots.add('a');
    expect(slots.list().sort()).toEqual(['a', 'a', 'b']);
    b();
    expect(slots.list()).toEqual(['a', 'a']);
    a();
    expect(slots.list()).toEqual(['a']);
  });

  it('takes off once: a place that is another by now stays', () => {
    const slots = createSlotList<string>();
    const first = slots.add('first');
    first();
    slots.add('second');
    first();
    expect(slots.list()).toEqual(['second']);
    expect(slots.add('third')).toBeTypeOf('function');
    expect(slots.list()).toEqual(['second', 'third']);
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
