import { browserGpc } from '../../browser/page.ts';
import { isRefused, passConsentGate } from '../consent-gate.ts';
import type { ConsentReceipt } from '../types.ts';
import { readActivation } from './activation.ts';
import type { Group } from './read.ts';

/** Counts events of the pointer, the keys and scrolling, never their content. */

type Input = Group<'input'>;

let aggregates: Input | null = null;

/** The aggregates so far; null if the page does not observe input. */
export function collectInput(): Input | null {
  return aggregates && { ...aggregates };
}

/** Fewer events say nothing about their clock. */
const GRID_EVENTS = 4;
/** Chromium rounds `timeStamp` to 0.1 ms. */
const GRID_MS = 0.15;

/**
 * Returns true once times differ in their fraction of a millisecond. X11 stamps whole milliseconds, so all
 * events of a real hand share one fraction.
 */
function createGrid(): (time: number) => boolean | null {
  let count = 0;
  let first = 0;
  let spread = 0;
  return (time) => {
    count += 1;
    if (count === 1) first = time;
    const apart = Math.abs(time - first) % 1;
    spread = Math.max(spread, Math.min(apart, 1 - apart));
    return count < GRID_EVENTS ? null : spread > GRID_MS;
  };
}

function listen(): () => void {
  const since = performance.now();
  const offGrid = createGrid();
  let downAt: number | null = null;
  let counts: Input = { moves: 0, downUpMs: null, forceless: null, offGrid: null };
  aggregates = counts;
  const onEvent = (event: PointerEvent): void => {
    const { type, timeStamp, pointerType, pressure } = event;
    // The press that gave the consent may still be under way when this begins.
    if (!event.isTrusted || timeStamp < since) return;
    const next = { ...counts };
    if (pointerType === 'mouse') next.offGrid = offGrid(timeStamp);
    if (type === 'pointermove') {
      // The activation is read at the first move: later a press could explain it.
      if (next.moves === 0) readActivation(true);
      next.moves = (next.moves ?? 0) + 1;
    } else if (type === 'pointerdown') {
      downAt = timeStamp;
      // A press without a device comes from assistive technology.
      if (pointerType === 'mouse')
        next.forceless = next.forceless === true || (pressure === 0 && (event.persistentDeviceId ?? 0) > 0);
    } else {
      if (downAt !== null) next.downUpMs = Math.round(timeStamp - downAt);
      downAt = null;
    }
    counts = next;
    aggregates = counts;
  };
  const types = ['pointermove', 'pointerdown', 'pointerup'] as const;
  for (const type of types) addEventListener(type, onEvent, { passive: true, capture: true });
  return () => {
    for (const type of types) removeEventListener(type, onEvent, { capture: true });
    aggregates = null;
  };
}

/**
 * Counts pointer moves, times the last press, and notes whether a mouse pressed without force or by another
 * clock than the display's, from now until `identify` or `update`. It reads no coordinates, no keys, and not
 * the press that gave the consent.
 * @returns a function that stops and forgets; null if the consent gate refuses
 */
export function observeInput(consent: ConsentReceipt | null): (() => void) | null {
  return isRefused(passConsentGate(consent, browserGpc())) ? null : listen();
}
