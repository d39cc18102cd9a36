import { flag } from './read.ts';

/** Finds a page that counts as activated although nobody pressed anything: a driver ran a script in it. */

const PRESSES = ['pointerdown', 'mousedown', 'touchstart', 'keydown', 'click'];
/** The number of resources that Chromium remembers, unless a page changes it. */
const RESOURCES_MAX = 250;

/** A press in a frame counts for this page too and is counted over there, also when the frame is gone. */
function mayBeFramed(): boolean {
  const resources = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
  return (
    frames.length > 0 ||
    resources.length >= RESOURCES_MAX ||
    resources.some(({ initiatorType }) => initiatorType === 'iframe')
  );
}

/** Chromium hands the activation of a page to the next one of the same origin: a link, a form, a reload, a step back. */
function isHandedOver(): boolean {
  const { navigation } = globalThis as { navigation?: { activation?: { from?: object | null } | null } };
  return Boolean(navigation?.activation?.from);
}

/** A driver ran a script as if somebody had pressed something. Null: somebody may have pressed elsewhere. */
function activatedAlone(): boolean | null {
  return flag(() => {
    const { eventCounts } = performance as { eventCounts?: ReadonlyMap<string, number> };
    if (!eventCounts || isHandedOver() || mayBeFramed()) return null;
    return navigator.userActivation.hasBeenActive && !PRESSES.some((type) => eventCounts.get(type));
  });
}

let wasActivated: boolean | null = false;

/**
 * Reads the activation of this page so far: a press explains only later events, and a removed frame leaves a doubt.
 * @param needsFocus for a later reading: where the page lacks the focus, a person may have typed into the console of developer
 * tools, which counts as a press
 */
export function readActivation(needsFocus = false): boolean | null {
  if (wasActivated !== false) return wasActivated;
  const isActivated = activatedAlone();
  wasActivated = isActivated && needsFocus && !document.hasFocus() ? null : isActivated;
  return wasActivated;
}
