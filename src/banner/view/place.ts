import { attempt, doc } from '../../browser/page.ts';

/**
 * The place of the host: in the top layer (CSS Positioned Layout 4, 3), above every z-index and outside every transform of the page. It
 * comes back when a page removes it, once a frame at most.
 */

interface Covers {
  readonly layer: HTMLElement;
  readonly dialog: HTMLDialogElement;
  /** Makes room in a root that is new. */
  readonly follow: () => void;
}

/** Dialogs in shadow roots are not found. */
const pageModal = (): Element | undefined => [...doc.querySelectorAll('dialog:modal')].at(-1);

/** They show nothing that is put into them. */
const REPLACED = 'video, iframe, img, canvas, object, embed';
const fullScreen = (): Element | null | undefined =>
  doc.fullscreenElement?.matches(REPLACED) ? null : doc.fullscreenElement;

/** A browser without popovers throws here: the host's z-index is all that there is. */
const isLifted = (host: HTMLElement): boolean | null => attempt(() => host.matches(':popover-open'));

/** Above what the page has put into the top layer since. */
function lift(host: HTMLElement): void {
  attempt(() => {
    if (isLifted(host)) host.hidePopover();
    host.showPopover();
  });
}

/** @returns puts the host where it belongs */
export function createPlace(host: HTMLElement, { layer, dialog, follow }: Covers): () => void {
  host.setAttribute('popover', 'manual');

  function attach(): void {
    const root: HTMLElement | null = doc.documentElement;
    // The settings are a modal dialog themselves, and would close.
    if (!root || (host.isConnected && dialog.open)) return;
    // Everything else is inert while one of them is open. A button over a film would be in the way, so only the question is there.
    const parent = pageModal() ?? (layer.hidden ? null : fullScreen()) ?? root;
    if (host.parentNode !== parent) {
      // Taken away open, it would be no modal dialog any more.
      dialog.close();
      // Next to body, whose style sheets count its children. Before it: the first that the keyboard reaches.
      parent.insertBefore(host, parent === root ? doc.body : null);
      follow();
    }
    if (isLifted(host) === false) lift(host);
  }

  function rise(): void {
    attach();
    const full = doc.fullscreenElement;
    if (host.isConnected && !dialog.open && (!full || full.contains(host))) lift(host);
  }

  const watch = new MutationObserver((records) => {
    if (records.some(({ type }) => type === 'attributes')) attach();
    else if (!host.isConnected) requestAnimationFrame(attach);
  });
  watch.observe(document, { childList: true, subtree: true, attributeFilter: ['open'] });
  doc.addEventListener('fullscreenchange', rise);
  // It does not bubble.
  doc.addEventListener('toggle', ({ target }) => (target === host ? attach() : rise()), true);
  dialog.addEventListener('close', attach);
  return attach;
}
