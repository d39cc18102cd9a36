import { attempt } from '../../browser/page.ts';
import { flag, type Group, text } from './read.ts';

/** Lends elements and functions of an empty frame, which the page has not patched. */

export type FrameRealm = Window & typeof globalThis;

function mount(element: HTMLIFrameElement): FrameRealm | null {
  return attempt(() => {
    (document.body ?? document.documentElement).append(element);
    const realm = element.contentWindow as FrameRealm;
    // A sandboxed page has an opaque origin and may not read its own frame.
    return attempt(() => realm.Error) && realm;
  });
}

/**
 * A canvas that has the fonts and styles of the frame: a page's web font may bear the name of a system's. Its methods are the
 * page's, so that the noise of a privacy add-on stays in what is drawn. A page that may not read its own frame lends its own document.
 */
export const canvasIn = (realm: FrameRealm | null): HTMLCanvasElement =>
  (realm?.document ?? document).adoptNode(document.createElement('canvas'));

/**
 * Opens a same-origin frame, hands its untouched realm to `use` and takes the frame away again, all within one task:
 * it is never painted, and the page's scripts never run at the same time.
 */
export function inFrame<T>(use: (realm: FrameRealm | null) => T) {
  const element = document.createElement('iframe');
  element.hidden = true;
  attempt(() => {
    element.srcdoc = '<!doctype html>';
  });
  // A6: only a patched iframe has a window before it is in a document.
  const srcdocPreattached = flag(() => Boolean(element.contentWindow));
  const realm = mount(element);
  try {
    const frame: Group<'frame'> = {
      webdriver: flag(() => realm?.navigator.webdriver),
      platform: text(() => realm?.navigator.platform),
      userAgent: text(() => realm?.navigator.userAgent),
      srcdocPreattached,
    };
    return { frame, used: use(realm) };
  } finally {
    element.remove();
  }
}
