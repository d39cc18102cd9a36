import { attempt, doc } from '../../browser/page.ts';

/**
 * Keeps the host element in the top layer (CSS Positioned Layout 4, section 3), above every z-index and
 * outside every transform of the page. If the page removes it, it comes back, at most once per frame.
 */

interface BannerParts {
  readonly layer: HTMLElement;
  readonly dialog: HTMLDialogElement;
  /**
   * Called after the host was moved: the page may have a new root element, which needs room for the banner.
   */
  readonly follow: () => void;
}

/** The page's open modal dialog. Dialogs in shadow roots are not found. */
const findModal = (): Element | undefined => [...doc.querySelectorAll('dialog:modal')].at(-1);

/** Elements that do not show their children. */
const REPLACED = 'video, iframe, img, canvas, object, embed';
const findFullScreen = (): Element | null | undefined =>
  doc.fullscreenElement?.matches(REPLACED) ? null : doc.fullscreenElement;

/** @returns null in a browser without popovers, where only the host's z-index helps */
export const isLifted = (host: HTMLElement): boolean | null => attempt(() => host.matches(':popover-open'));

/** Shown again, the host is above everything that the page has put into the top layer since. */
function liftToTop(host: HTMLElement): void {
  attempt(() => {
    if (isLifted(host)) host.hidePopover();
    host.showPopover();
  });
}

/** @returns a function that puts the host back in its place */
export function createPlace(host: HTMLElement, { layer, dialog, follow }: BannerParts): () => void {
  host.setAttribute('popover', 'manual');
  /** The page's server wrote the host there. Moved, it would lose the focus and could move other elements. */
  const home = host.parentElement;

  function attach(): void {
    const root: HTMLElement | null = doc.documentElement;
    // The open settings are a modal dialog themselves; moving them would close them.
    if (!root || (host.isConnected && dialog.open)) return;
    // Everything outside an open modal dialog is inert. Over a full screen only the question is shown: a
    // button would be in the way.
    const place = home?.isConnected ? home : root;
    const parent = findModal() ?? (layer.hidden ? null : findFullScreen()) ?? place;
    if (host.parentNode !== parent) {
      // An open dialog that is moved stops being modal, so it is closed first.
      dialog.close();
      // Outside body, because style sheets may count its children, and before it, so that the keyboard
      // reaches the host first.
      parent.insertBefore(host, parent === root ? doc.body : null);
    }
    follow();
    if (isLifted(host) === false) liftToTop(host);
  }

  function raiseHost(): void {
    attach();
    const full = doc.fullscreenElement;
    if (host.isConnected && !dialog.open && (!full || full.contains(host))) liftToTop(host);
  }

  const observer = new MutationObserver((records) => {
    if (records.some(({ type }) => type === 'attributes')) attach();
    else if (!host.isConnected) requestAnimationFrame(attach);
  });
  observer.observe(document, { childList: true, subtree: true, attributeFilter: ['open'] });
  doc.addEventListener('fullscreenchange', raiseHost);
  // `toggle` does not bubble, so this listener captures.
  doc.addEventListener('toggle', ({ target }) => (target === host ? attach() : raiseHost()), true);
  dialog.addEventListener('close', attach);
  return attach;
}
