import { SECOND } from '../lib/clock.ts';

/** How much may be on its way to a target, which is less once it has stopped answering. */

const MAX_IN_FLIGHT = 20;
/** Deliveries in a row without an answer; after them the target is only probed. */
const MAX_SILENT = 5;
const PROBE_EVERY_MS = 30 * SECOND;

export interface TargetState {
  readonly inFlight: number;
  /** Deliveries in a row that got no answer: none in time, or no connection. */
  readonly silent: number;
  readonly probeAt: number;
}

export const UNTRIED: TargetState = { inFlight: 0, silent: 0, probeAt: 0 };

export const isOpen = ({ silent }: TargetState): boolean => silent >= MAX_SILENT;

/** How many more deliveries may start. */
export function freeSlots(target: TargetState, now: number, most = MAX_IN_FLIGHT): number {
  if (!isOpen(target)) return most - target.inFlight;
  return target.inFlight === 0 && now >= target.probeAt ? 1 : 0;
}

/** Whether it pays to look for more: one look takes several. */
export const isHalfFree = ({ inFlight }: TargetState): boolean => inFlight <= MAX_IN_FLIGHT / 2;

/** @param answered null: it was never called */
export function afterDelivery(target: TargetState, answered: boolean | null, now: number): TargetState {
  const inFlight = target.inFlight - 1;
  if (answered === null) return { ...target, inFlight };
  return answered
    ? { inFlight, silent: 0, probeAt: 0 }
    : { inFlight, silent: target.silent + 1, probeAt: now + PROBE_EVERY_MS };
}
