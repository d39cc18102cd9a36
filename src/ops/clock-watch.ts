import type { Database } from '../db/db.ts';
import { readForgottenTo } from '../db/time-marks-store.ts';
import { type Clock, HOUR, MINUTE } from '../lib/clock.ts';
import { aheadOf, makeSteadyClock } from '../lib/steady-clock.ts';
import { readSteadyMemory } from './job-store.ts';
import { leastSkew, noteSkew } from './skew-store.ts';

/**
 * `clock-ahead`: the clock jumped, or was ahead at the start, and is not believed yet; what cannot be taken back waits.
 * `clock-believed`: that is over. `clock-forgotten-ahead`: nonces were forgotten while a clock was ahead, and bundles are
 * refused as stale until the time has caught up.
 */
export type ClockEvent = 'clock-ahead' | 'clock-believed' | 'clock-forgotten-ahead';

/** Sleep and restarts make shorter jumps, and nobody has to be told. */
export const TOLD_AHEAD_MS = HOUR;
/** Nodes' clocks differ a little. */
export const TOLD_FORGOTTEN_MS = MINUTE;

export type ClockWatch = Awaited<ReturnType<typeof watchClock>>;

/** The steady clock of a server, compared with what the last one wrote down. @throws when the database cannot be read */
export async function watchClock(
  database: Database,
  clock: Clock,
  monotonic: () => number,
  onEvent: (event: ClockEvent, ms: number) => void,
) {
  // Before the first await: a clock that is set in the meantime has jumped.
  const start = { wall: clock(), ticks: monotonic() };
  const steady = makeSteadyClock(clock, monotonic, await readSteadyMemory(database), start);
  let isAhead = false;
  let isForgotten = false;
  return {
    steady,
    /** The steady time; each change of the clock is reported once. */
    async look() {
      const now = steady.now();
      const ahead = aheadOf(steady.memory());
      if (ahead > TOLD_AHEAD_MS !== isAhead) {
        isAhead = !isAhead;
        onEvent(isAhead ? 'clock-ahead' : 'clock-believed', ahead);
      }
      const forgotten = ((await readForgottenTo(database)) ?? 0) - now;
      if (forgotten > TOLD_FORGOTTEN_MS !== isForgotten) {
        isForgotten = !isForgotten;
        if (isForgotten) onEvent('clock-forgotten-ahead', forgotten);
      }
      return now;
    },
  };
}

export type SkewWatch = Awaited<ReturnType<typeof watchSkew>>;

/** Noted before the first bundle, so that a later, larger one is compared with it. */
export async function watchSkew(database: Database, own: number, clock: Clock) {
  let least = own;
  const note = async (): Promise<void> => {
    await noteSkew(database, own, clock());
    least = await leastSkew(database, own, clock());
  };
  await note();
  return {
    /** The smallest skew by which a bundle that is fresh now may have been claimed, on whichever node. */
    least: () => least,
    /** Says that this node judges by its skew still, and hears of the others. */
    note,
  };
}
