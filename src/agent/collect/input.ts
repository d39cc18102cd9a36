import { browserGpc, isRefused, passGate } from '../gate.ts';
import type { ConsentReceipt } from '../types.ts';
import type { Group } from './read.ts';

type Input = Group<'input'>;

let seen: Input | null = null;

/** The aggregates so far; null when nobody asked for them. */
export function collectInput(): Input | null {
  return seen && { ...seen };
}

function listen(): () => void {
  let counts: { moves: number; downUpMs: number | null } = { moves: 0, downUpMs: null };
  let downAt: number | null = null;
  const keep = (next: Partial<typeof counts>): void => {
    counts = { ...counts, ...next };
    seen = counts;
  };
  const onMove = (): void => keep({ moves: counts.moves + 1 });
  const onDown = (event: Event): void => {
    downAt = event.timeStamp;
  };
  const onUp = (event: Event): void => {
    if (downAt !== null) keep({ downUpMs: Math.round(event.timeStamp - downAt) });
    downAt = null;
  };
  const listeners = [
    ['pointermove', onMove],
    ['pointerdown', onDown],
    ['pointerup', onUp],
  ] as const;
  for (const [type, listener] of listeners) addEventListener(type, listener, { passive: true });
  keep({});
  return () => {
    for (const [type, listener] of listeners) removeEventListener(type, listener);
    seen = null;
  };
}

/**
 * Counts pointer moves and times the last press, from now until `identify`. No coordinates, no keys.
 * @returns a function that stops and forgets; null when the gate refuses
 */
export function observeInput(consent: ConsentReceipt | null): (() => void) | null {
  return isRefused(passGate(consent, browserGpc())) ? null : listen();
}
