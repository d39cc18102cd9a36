import { type Clock, HOUR, SECOND } from './clock.ts';

/** What an exact clock is slewed by between two looks, and a slow machine takes. */
const TOLERATED_MS = 2 * SECOND;
/** So long a clock has to stay where it jumped before it is believed. */
const BELIEVED_AFTER_MS = 6 * HOUR;

/**
 * The time for what cannot be taken back: forgetting, sealing, destroying. A clock that jumps ahead may be wrong and be
 * set back, so it goes on from where it was, and believes the new time only when it has stood for hours. A jump back is
 * followed at once. It has to be looked at now and then.
 * @param monotonic milliseconds that no clock change touches
 */
export function makeSteadyClock(clock: Clock, monotonic: () => number): Clock {
  let wall = clock();
  let ticks = monotonic();
  let ahead = 0;
  let jumpedAt = ticks;
  return () => {
    const before = wall - ticks;
    wall = clock();
    ticks = monotonic();
    const jump = wall - ticks - before;
    if (jump > TOLERATED_MS) {
      ahead += jump;
      jumpedAt = ticks;
    } else if (jump < -TOLERATED_MS) {
      ahead = Math.max(0, ahead + jump);
    }
    if (ticks - jumpedAt >= BELIEVED_AFTER_MS) ahead = 0;
    return wall - ahead;
  };
}
