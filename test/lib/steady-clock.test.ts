import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../src/lib/clock.ts';
import { makeSteadyClock } from '../../src/lib/steady-clock.ts';
import { fc } from '../support/property.ts';

const BEGIN = 1_763_630_000_000;

/** A wall clock and one that only runs, both in the test's hand; looked at once a minute. */
function makeTimes() {
  let wall = BEGIN;
  let ticks = 0;
  const steady = makeSteadyClock(
    () => wall,
    () => ticks,
  );
  return {
    jump(ms: number): void {
      wall += ms;
    },
    after(ms: number): number {
      for (let left = ms; left > 0; left -= MINUTE) {
        wall += Math.min(left, MINUTE);
        ticks += Math.min(left, MINUTE);
        steady();
      }
      return steady() - BEGIN;
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
});
