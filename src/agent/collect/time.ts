import { type Group, number, pause, text, within } from './read.ts';

/** About a millisecond of spinning; a coarser clock than that is met by waiting instead. */
const SPINS = 20_000;
const STEPS = 8;
const WAITS = 6;
/** Far more than the waits take, except in a hidden page. */
const WAIT_MS = 500;

/** Smallest distance seen between two readings while spinning, in milliseconds. */
function spin(): number {
  let smallest = Number.POSITIVE_INFINITY;
  let steps = 0;
  let last = performance.now();
  for (let turn = 0; turn < SPINS && steps < STEPS; turn += 1) {
    const now = performance.now();
    if (now === last) continue;
    smallest = Math.min(smallest, now - last);
    last = now;
    steps += 1;
  }
  return smallest;
}

/** For clocks that stand still for longer than a spin: Firefox with resistFingerprinting steps by 16.67 ms. */
async function wait(): Promise<number> {
  let smallest = Number.POSITIVE_INFINITY;
  let last = performance.now();
  for (let turn = 0; turn < WAITS; turn += 1) {
    await pause(4);
    const now = performance.now();
    if (now !== last) smallest = Math.min(smallest, now - last);
    last = now;
  }
  return smallest;
}

async function clockStep(): Promise<number | null> {
  const spun = spin();
  const step = spun === Number.POSITIVE_INFINITY ? await wait() : spun;
  return number(() => Math.round(step * 1000) / 1000);
}

/** Temporal knows the zone at once; the first Intl formatter of a page costs 10 to 20 ms of main thread. */
function timeZone(): string {
  const { Temporal } = globalThis as { Temporal?: { Now: { timeZoneId(): string } } };
  return Temporal?.Now.timeZoneId() ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** `offsetMinutes` counts east of Greenwich, as RFC 3339 does and unlike getTimezoneOffset. */
export async function collectTime(): Promise<Group<'time'>> {
  return {
    zone: text(timeZone),
    offsetMinutes: number(() => 0 - new Date().getTimezoneOffset()),
    clockStepMs: await within(WAIT_MS, clockStep),
  };
}
