import { flag } from './read.ts';

/** Detects a page that counts as activated although nobody pressed anything: a driver ran a script in it. */

const PRESSES = ['pointerdown', 'mousedown', 'touchstart', 'keydown', 'click'];
/** The number of resources that Chromium remembers, unless a page changes it. */
const RESOURCES_MAX = 250;

/** A press in a frame activates this page too, but only the frame counts it, even if it was removed since. */
function mayBeFramed(): boolean {
  const resources = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
  return (
    frames.length > 0 ||
    resources.length >= RESOURCES_MAX ||
    resources.some(({ initiatorType }) => initiatorType === 'iframe')
  );
}

/**
 * Chromium passes the activation on to the next page of the same origin: after a link, a form, a reload or a
 * step back.
 */
function isHandedOver(): boolean {
  const { navigation } = globalThis as { navigation?: { activation?: { from?: object | null } | null } };
  return Boolean(navigation?.activation?.from);
}

/** True if a driver ran a script as if somebody had pressed something; null if somebody may have. */
function isActivatedAlone(): boolean | null {
  return flag(() => {
    const { eventCounts } = performance as { eventCounts?: ReadonlyMap<string, number> };
    if (!eventCounts || isHandedOver() || mayBeFramed()) return null;
    return navigator.userActivation.hasBeenActive && !PRESSES.some((type) => eventCounts.get(type));
  });
}

let wasActivated: boolean | null = false;

/**
 * Reads the activation of this page so far. The first positive or doubtful reading stays, because a later
 * press would explain it.
 * @param needsFocus for a later reading: without the focus, a person may have typed into the developer tools'
 * console, which counts as a press
 */
export function readActivation(needsFocus = false): boolean | null {
  if (wasActivated !== false) return wasActivated;
  const isActivated = isActivatedAlone();
  wasActivated = isActivated && needsFocus && !document.hasFocus() ? null : isActivated;
  return wasActivated;
}
