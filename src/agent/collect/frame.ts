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
 * A canvas with the fonts and styles of the frame: a page's web font may have the name of a system font. Its
 * methods are the page's, so that a privacy add-on adds its noise. A page that may not read its own frame
 * uses its own document.
 */
export const canvasIn = (realm: FrameRealm | null): HTMLCanvasElement =>
  (realm?.document ?? document).adoptNode(document.createElement('canvas'));

/**
 * Opens a same-origin frame, passes its untouched realm to `read` and removes the frame, all within one task:
 * the frame is never painted, and the page's scripts cannot run in between.
 */
export function inFrame<T>(read: (realm: FrameRealm | null) => T) {
  const element = document.createElement('iframe');
  element.hidden = true;
  attempt(() => {
    element.srcdoc = '<!doctype html>';
  });
  // Rule A6: only a patched iframe has a window before it is in a document.
  const srcdocPreattached = flag(() => Boolean(element.contentWindow));
  const realm = mount(element);
  try {
    const frame: Group<'frame'> = {
      webdriver: flag(() => realm?.navigator.webdriver),
      platform: text(() => realm?.navigator.platform),
      userAgent: text(() => realm?.navigator.userAgent),
      srcdocPreattached,
    };
    return { frame, result: read(realm) };
  } finally {
    element.remove();
  }
}
