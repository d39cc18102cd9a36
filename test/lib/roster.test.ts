import { describe, expect, it } from 'vitest';
import { makeRoster } from '../../src/lib/roster.ts';

describe('roster', () => {
  it('lists what was added and not taken off', () => {
    const roster = makeRoster<string>();
    const [a, b] = [roster.add('a'), roster.add('b')];
    roster.add('a');
    expect(roster.list().sort()).toEqual(['a', 'a', 'b']);
    b();
    expect(roster.list()).toEqual(['a', 'a']);
    a();
    expect(roster.list()).toEqual(['a']);
  });

  it('takes off once: a place that is another by now stays', () => {
    const roster = makeRoster<string>();
    const first = roster.add('first');
    first();
    roster.add('second');
    first();
    expect(roster.list()).toEqual(['second']);
    expect(roster.add('third')).toBeTypeOf('function');
    expect(roster.list()).toEqual(['second', 'third']);
  });

  it('has as many places as things were there at once', () => {
    const roster = makeRoster<number>();
    for (let i = 0; i < 10_000; i += 1) roster.add(i)();
    const last = [1, 2, 3].map((i) => roster.add(i));
    expect(roster.list()).toEqual([1, 2, 3]);
    for (const off of last) off();
    expect(roster.list()).toEqual([]);
  });
});
