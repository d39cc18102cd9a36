/**
 * Waits until React has taken an element over (React 17 to 19 keep the names of these properties): a node that it does not know makes it
 * give up the page that the server wrote (error 418). The page about my data has the same.
 */

const LOOK_MS = 50;
/** React leaves alone what a page sets as HTML: that is never taken over. */
const MAX_LOOKS = 200;

const hasKey = (target: object | null, start: string): boolean =>
  target !== null && Object.keys(target).some((key) => key.startsWith(start));

function isReactRoot(node: Node | null): boolean {
  return node !== null && (hasKey(node, '__reactContainer$') || isReactRoot(node.parentNode));
}

/** It is the page's script that starts React, perhaps after the load. */
const mayBeReact = (element: Element): boolean =>
  isReactRoot(element) ||
  '__NEXT_DATA__' in window ||
  '__next_f' in window ||
  '__reactRouterContext' in window;

export async function untilHydrated(element: Element): Promise<void> {
  if (document.readyState !== 'complete')
    await new Promise((loaded) => addEventListener('load', loaded, { once: true }));
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    // Twice at least: scripts of the page start it in a task after the load.
    if (hasKey(element, '__reactFiber$') || (looks > 1 && !mayBeReact(element))) return;
    await new Promise((later) => setTimeout(later, LOOK_MS));
  }
}
