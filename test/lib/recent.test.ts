import { describe, expect, it } from 'vitest';
import { createRecent } from '../../src/lib/collections.ts';

describe('what is kept for a while', () => {
  it('is there for the whole time, and gone after twice as long', () => {
    let now = 0;
    const recent = createRecent<number>(100, 10, () => now);
    now = 99;
    recent.set('late', 1);
    now = 198;
    expect(recent.get('late')).toBe(1);
    now = 398;
    expect(recent.get('late')).toBeUndefined();
  });

  it('stays while it is read', () => {
    let now = 0;
    const recent = createRecent<number>(100, 10, () => now);
    recent.set('read', 1);
    for (; now < 1000; now += 90) expect(recent.get('read')).toBe(1);
  });

  it('is never more than it may be, and what is there may change', () => {
    let now = 0;
    const recent = createRecent<number>(100, 2, () => now);
    expect([recent.set('a', 1), recent.set('b', 1), recent.set('c', 1), recent.set('a', 2)]).toEqual([
      true,
      true,
      false,
      true,
    ]);
    expect([recent.get('a'), recent.get('c')]).toEqual([2, undefined]);
    now = 100;
    expect(recent.set('c', 1)).toBe(true);
  });
});
