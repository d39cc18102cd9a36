import { flag } from './read.ts';

const PRESSES = ['pointerdown', 'mousedown', 'touchstart', 'keydown', 'click'];
/** How many resources Chromium remembers, unless a page says otherwise. */
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

let seen: boolean | null = false;

/** Of this page so far: a press explains only what comes after it, and a frame that is gone stays a doubt. */
export function readActivation(): boolean | null {
  if (seen === false) seen = activatedAlone();
  return seen;
}
