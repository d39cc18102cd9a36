import { browserGpc } from '../../browser/page.ts';
import { isRefused, passConsentGate } from '../consent-gate.ts';
import type { ConsentReceipt } from '../types.ts';
import { readActivation } from './activation.ts';
import type { Group } from './read.ts';

/** Counts events of the pointer, the keys and scrolling, never their content. */

type Input = Group<'input'>;

let aggregates: Input | null = null;

/** The aggregates so far; null when nobody asked for them. */
export function collectInput(): Input | null {
  return aggregates && { ...aggregates };
}

/** Fewer events say nothing of their clock. */
const GRID_EVENTS = 4;
/** Chromium rounds `timeStamp` to 0.1 ms. */
const GRID_MS = 0.15;

/**
 * True if times have different fractions of a millisecond: X11 stamps whole ones, so all times of a hand
 * share one.
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
    // The press that accepted is still on its way when this begins.
    if (!event.isTrusted || timeStamp < since) return;
    const next = { ...counts };
    if (pointerType === 'mouse') next.offGrid = offGrid(timeStamp);
    if (type === 'pointermove') {
      // Before a press explains it; during a press it is not counted yet.
      if (next.moves === 0) readActivation(true);
      next.moves = (next.moves ?? 0) + 1;
    } else if (type === 'pointerdown') {
      downAt = timeStamp;
      // Without a device it is assistive technology that presses.
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
 * Counts pointer moves, times the last press, and notes whether a mouse pressed without force or by another clock than the
 * display's, from now until `identify` or `update`. No coordinates, no keys, and not the press that gave the consent.
 * @returns a function that stops and forgets; null when the gate refuses
 */
export function observeInput(consent: ConsentReceipt | null): (() => void) | null {
  return isRefused(passConsentGate(consent, browserGpc())) ? null : listen();
}
