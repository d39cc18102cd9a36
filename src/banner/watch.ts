import { GATED_MEDIA } from './media.ts';
import { GATED_SCRIPT } from './scripts.ts';

/** Frameworks add and remove parts of a page long after it was loaded. */

const GATED = `${GATED_SCRIPT},${GATED_MEDIA}`;

const holdsGated = (node: Node): boolean =>
  node instanceof Element && (node.matches(GATED) || node.querySelector(GATED) !== null);

/** @param act called when something that waits for a purpose came or went */
export function watchPage(act: () => void): void {
  new MutationObserver((records) => {
    const isConcerned = records.some(({ addedNodes, removedNodes }) =>
      [...addedNodes, ...removedNodes].some(holdsGated),
    );
    if (isConcerned) act();
  }).observe(document, { childList: true, subtree: true });
}
