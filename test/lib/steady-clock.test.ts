import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../src/lib/clock.ts';
import {
  aheadOf,
  makeSteadyClock,
  parseSteadyMemory,
  type SteadyMemory,
} from '../../src/lib/steady-clock.ts';
import { fc } from '../support/property.ts';

const BEGIN = 1_763_630_000_000;

/** A wall clock and one that only runs, both in the test's hand; looked at once a minute. */
function makeTimes(last: SteadyMemory | null = null, begin = BEGIN) {
  let wall = begin;
  let ticks = 0;
  const steady = makeSteadyClock(
    () => wall,
    () => ticks,
    last,
  );
  return {
    memory: () => steady.memory(),
    wall: () => wall - BEGIN,
    jump(ms: number): void {
      wall += ms;
    },
    after(ms: number): number {
      for (let left = ms; left > 0; left -= MINUTE) {
        wall += Math.min(left, MINUTE);
        ticks += Math.min(left, MINUTE);
        steady.now();
      }
      return steady.now() - BEGIN;
    },
  };
}

describe('a steady clock', () => {
  it('goes with a clock that goes well', () => {
    expect(makeTimes().after(3 * HOUR)).toBe(3 * HOUR);
  });

  it('does not follow a jump ahead that is set back, however often it happens', () => {
    const times = makeTimes();
    let real = 0;
    for (let i = 0; i < 5; i += 1) {
      times.jump(HOUR);
      real += 30 * MINUTE;
      expect(times.after(30 * MINUTE)).toBe(real);
      times.jump(-HOUR);
      real += 10 * MINUTE;
      expect(times.after(10 * MINUTE)).toBe(real);
    }
  });

  it('believes a time that stays', () => {
    const times = makeTimes();
    times.jump(HOUR);
    expect(times.after(5 * HOUR)).toBe(5 * HOUR);
    expect(times.after(2 * HOUR)).toBe(8 * HOUR);
  });

  it('believes each of several jumps when that one has stood', () => {
    const times = makeTimes();
    times.jump(HOUR);
    times.after(4 * HOUR);
    times.jump(2 * HOUR);
    expect(times.after(HOUR)).toBe(5 * HOUR);
    expect(times.after(2 * HOUR)).toBe(8 * HOUR);
    expect(times.after(4 * HOUR)).toBe(14 * HOUR);
    expect(aheadOf(times.memory())).toBe(0);
  });

  it.each([
    [5, 1],
    [4, 4],
    [1, 23],
  ])(
    'a machine that wakes for %i h and sleeps for %i h falls behind by no more than the sleep of six hours',
    (awake, asleep) => {
      const times = makeTimes();
      const most = asleep * Math.ceil(6 / awake) * HOUR;
      for (let real = 0; real < 30 * 24; real += awake + asleep) {
        const steady = times.after(awake * HOUR);
        expect(times.wall() - steady).toBeLessThanOrEqual(most);
        times.jump(asleep * HOUR);
      }
    },
  );

  it('takes the newest jump back first', () => {
    const times = makeTimes();
    times.jump(HOUR);
    times.after(5 * HOUR);
    times.jump(3 * HOUR);
    times.jump(-3 * HOUR);
    expect(times.after(2 * HOUR)).toBe(8 * HOUR);
  });

  it('follows a jump back at once', () => {
    const times = makeTimes();
    times.jump(-HOUR);
    expect(times.after(MINUTE)).toBe(MINUTE - HOUR);
  });

  it('follows a clock that is slewed', () => {
    const times = makeTimes();
    for (let i = 0; i < 100; i += 1) {
      times.jump(30);
      times.after(MINUTE);
    }
    expect(times.after(MINUTE)).toBe(101 * MINUTE + 3000);
  });

  it('is never ahead of the clock', () => {
    const step = fc.record({
      jump: fc.integer({ min: -2 * HOUR, max: 2 * HOUR }),
      run: fc.integer({ min: 0, max: HOUR }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const times = makeTimes();
        let wall = 0;
        for (const { jump, run } of steps) {
          times.jump(jump);
          wall += jump + run;
          expect(times.after(run)).toBeLessThanOrEqual(wall);
        }
      }),
    );
  });

  it('reads what it wrote, and nothing else', () => {
    const memory = { steady: BEGIN, jumps: [{ ms: HOUR, stood: 0 }] };
    expect(parseSteadyMemory(JSON.stringify(memory))).toEqual(memory);
    for (const text of [
      '',
      'null',
      '{}',
      '[]',
      '{"steady":"1","jumps":[]}',
      '{"steady":1,"jumps":[{"ms":1}]}',
    ])
      expect(parseSteadyMemory(text), text).toBeNull();
  });

  describe('that starts again', () => {
    const YEAR = 365 * 24 * HOUR;
    const known: SteadyMemory = { steady: BEGIN, jumps: [] };

    it('takes a short time off as it is', () => {
      expect(makeTimes(known, BEGIN + 5 * HOUR).after(0)).toBe(5 * HOUR);
      expect(makeTimes(known, BEGIN - 5 * HOUR).after(0)).toBe(-5 * HOUR);
    });

    it('does not believe a clock that is far ahead until it has stood', () => {
      const times = makeTimes(known, BEGIN + YEAR);
      expect(times.after(5 * HOUR)).toBe(5 * HOUR);
      expect(times.after(HOUR)).toBe(YEAR + 6 * HOUR);
    });

    it('goes on from where it was when that clock is set right', () => {
      const times = makeTimes(known, BEGIN + YEAR);
      times.after(5 * HOUR);
      times.jump(-YEAR);
      expect(times.after(10 * HOUR)).toBe(15 * HOUR);
      expect(times.memory()).toEqual({ steady: BEGIN + 15 * HOUR, jumps: [] });
    });

    it('counts on over restarts: what stood before need not stand again', () => {
      let times = makeTimes(known, BEGIN + YEAR);
      for (let i = 0; i < 5; i += 1) {
        expect(times.after(HOUR)).toBe((i + 1) * HOUR);
        times = makeTimes(times.memory(), BEGIN + times.wall());
      }
      expect(times.after(HOUR)).toBe(YEAR + 6 * HOUR);
    });

    it('a second jump while it was off is one of its own, and one back takes the newest', () => {
      const first = makeTimes(known, BEGIN + YEAR);
      first.after(5 * HOUR);
      const second = makeTimes(first.memory(), BEGIN + 2 * YEAR + 5 * HOUR);
      expect(second.after(HOUR)).toBe(YEAR + 6 * HOUR);
      const back = makeTimes(first.memory(), BEGIN + 5 * HOUR);
      expect(back.after(10 * HOUR)).toBe(15 * HOUR);
    });
  });
});
