import { doc } from '../browser/page.ts';
import { GATED_MEDIA, GATED_SCRIPT } from './gated.ts';
import type { LoadExtras } from './load-extras.ts';
import type { MediaDeps } from './media.ts';
import { CHOICES_LINK } from './view/view.ts';

/**
 * Applies the choices to the page: starts granted scripts and media, and empties media that are no longer
 * granted.
 */

interface GatesDeps extends MediaDeps {
  /** Called whenever the page or the choices have changed. */
  readonly onPage: () => void;
}

const CONCERNED = `${GATED_SCRIPT},${GATED_MEDIA},${CHOICES_LINK}`;

const isConcerned = (node: Node): boolean =>
  node instanceof Element && (node.matches(CONCERNED) || node.querySelector(CONCERNED) !== null);

/** A script waits unseen until something is granted; media have a placeholder. */
const hasWork = ({ startable }: GatesDeps): boolean =>
  doc.querySelector(startable().size > 0 ? `${GATED_SCRIPT},${GATED_MEDIA}` : GATED_MEDIA) !== null;

/** @returns a function to call after a choice; it also runs when the page adds or removes such an element */
export function createGates(loadExtras: LoadExtras, deps: GatesDeps): () => void {
  let run: (() => void) | null = null;

  async function startRunning(): Promise<void> {
    const extras = await loadExtras();
    if (!extras) return;
    run ??= extras.createRunner(deps);
    run();
  }

  const applyChoices = (): void => {
    deps.onPage();
    if (run) run();
    else if (hasWork(deps)) void startRunning();
  };
  new MutationObserver((records) => {
    const hasChanged = records.some(({ addedNodes, removedNodes }) =>
      [...addedNodes, ...removedNodes].some(isConcerned),
    );
    if (hasChanged) applyChoices();
  }).observe(document, { childList: true, subtree: true });
  return applyChoices;
}
