import { type Group, number, pause, text, within } from './read.ts';

/** About a millisecond of spinning; a coarser clock than that is met by waiting instead. */
const SPINS = 20_000;
const STEPS = 8;
const MAX_PAUSES = 6;
/** Far more than the waits take, except in a hidden page. */
const WAIT_MS = 500;

/** Smallest distance seen between two readings of the clock, in milliseconds. */
async function clockStep(): Promise<number | null> {
  const distances: number[] = [];
  let last = performance.now();
  const look = (): void => {
    const now = performance.now();
    if (now !== last) distances.push(now - last);
    last = now;
  };
  for (let turn = 0; turn < SPINS && distances.length < STEPS; turn += 1) look();
  // Waits when the clock stands still for longer than a spin: Firefox with resistFingerprinting steps by
  // 16.67 ms.
  const pauses = distances.length === 0 ? MAX_PAUSES : 0;
  for (let turn = 0; turn < pauses; turn += 1) {
    await pause(4);
    look();
  }
  return number(() => Math.round(Math.min(...distances) * 1000) / 1000);
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
