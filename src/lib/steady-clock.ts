import { z } from 'zod';
import { type Clock, HOUR, SECOND } from './clock.ts';
import { orElse } from './or-else.ts';

/** What an exact clock is slewed by between two looks, and a slow machine takes. */
const TOLERATED_MS = 2 * SECOND;
/** So long a clock has to stay where it jumped before it is believed. */
const BELIEVED_AFTER_MS = 6 * HOUR;
/** A process may have been off for so long without a doubt about the clock that it starts with. */
const OFF_MS = 6 * HOUR;

/** A jump ahead that is not believed yet. `stood`: for how long it has, while somebody looked. */
const jumpSchema = z.object({ ms: z.number(), stood: z.number() }).readonly();
type Jump = z.infer<typeof jumpSchema>;

/** What the next process has to know. */
const memorySchema = z.object({ steady: z.number(), jumps: z.array(jumpSchema).readonly() }).readonly();
export type SteadyMemory = z.infer<typeof memorySchema>;

/** Null for anything that no process wrote. */
export const parseSteadyMemory = (text: string): SteadyMemory | null =>
  orElse(() => memorySchema.parse(JSON.parse(text)), null);

/** How far the clock was ahead of what was believed. */
export const aheadOf = ({ jumps }: Pick<SteadyMemory, 'jumps'>): number =>
  jumps.reduce((total, { ms }) => total + ms, 0);

/** The newest jump is the first to be taken back. */
function takeBack(jumps: readonly Jump[], ms: number): Jump[] {
  const left = [...jumps];
  for (let rest = ms; rest > 0; ) {
    const last = left.pop();
    if (!last) break;
    if (last.ms > rest) left.push({ ...last, ms: last.ms - rest });
    rest -= last.ms;
  }
  return left;
}

/** The jumps of a process that starts at `wall`: those that were waiting, and the time that it was off where that is long. */
function jumpsAtStart(wall: number, memory: SteadyMemory | null): Jump[] {
  if (!memory) return [];
  const off = wall - memory.steady - aheadOf(memory);
  if (off > OFF_MS) return [...memory.jumps, { ms: off, stood: 0 }];
  return takeBack(memory.jumps, Math.max(0, -off));
}

/**
 * The time for what cannot be taken back: forgetting, anchoring, destroying. A clock that jumps ahead may be wrong and be
 * set back, so it continues from where it was, and believes a jump once it has lasted for hours: a machine that
 * sleeps often jumps often, and falls behind by no more than the sleep of those hours. A jump back is followed at once.
 * It has to be looked at now and then.
 * @param monotonic milliseconds that no clock change touches
 * @param last what an earlier process knew
 * @param start both clocks when this one started, where `last` took its time
 */
export function makeSteadyClock(
  clock: Clock,
  monotonic: () => number,
  last: SteadyMemory | null = null,
  start = { wall: clock(), ticks: monotonic() },
) {
  let { wall, ticks } = start;
  let jumps = jumpsAtStart(wall, last);
  return {
    now() {
      const before = wall - ticks;
      const passed = monotonic() - ticks;
      wall = clock();
      ticks += passed;
      const jump = wall - ticks - before;
      jumps = jumps.map(({ ms, stood }) => ({ ms, stood: stood + passed }));
      if (jump > TOLERATED_MS) jumps.push({ ms: jump, stood: 0 });
      else if (jump < -TOLERATED_MS) jumps = takeBack(jumps, -jump);
      jumps = jumps.filter(({ stood }) => stood < BELIEVED_AFTER_MS);
      return wall - aheadOf({ jumps });
    },
    /** As of the last look. */
    memory: () => ({ steady: wall - aheadOf({ jumps }), jumps }),
  };
}
