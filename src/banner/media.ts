import { attempt, doc, guarded, untilHydrated } from '../browser/page.ts';
import { purposesOf } from './scripts.ts';

/** `<iframe data-purpose="…" data-src="…">`, images, videos and sounds: loaded while every purpose is granted, with a placeholder before. */

export const GATED_MEDIA = ':is(iframe,img,video,audio)[data-purpose][data-src]';
type Media = HTMLIFrameElement | HTMLImageElement | HTMLMediaElement;

/** A counting pixel has no place for anything. */
const MIN_PLACE = 64;

export interface MediaDeps {
  /** It is empty while the ledger is asked, and `granted` is not: what runs continues, and nothing starts. */
  readonly startable: () => ReadonlySet<string>;
  readonly granted: () => ReadonlySet<string>;
  /** Fills a placeholder for these purposes; false while nothing is known about them. */
  readonly fill: (placeholder: HTMLElement, purposes: readonly string[]) => boolean;
}

/** `display` and its priority are the page's own: the element gets them back when its placeholder ends. */
interface Waiting {
  readonly placeholder: HTMLElement;
  readonly display: string;
  readonly priority: string;
}

function start(media: Media): void {
  const { src = '', srcset } = media.dataset;
  if (srcset !== undefined && media instanceof HTMLImageElement) media.srcset = srcset;
  media.src = src;
}

function stop(media: Media): void {
  // A frame keeps its page when the attribute is removed.
  if (media instanceof HTMLIFrameElement) media.contentWindow?.location.replace('about:blank');
  media.removeAttribute('src');
  media.removeAttribute('srcset');
  if (media instanceof HTMLMediaElement) media.load();
}

const hasPlace = (media: Media): boolean =>
  ['width', 'height'].every((name) => Number(media.getAttribute(name) ?? MIN_PLACE) >= MIN_PLACE) &&
  media.getClientRects().length > 0;

function place(media: Media, purposes: readonly string[], deps: MediaDeps): Waiting | null {
  const placeholder = doc.createElement('gpd-consent-wait');
  if (!hasPlace(media) || !deps.fill(placeholder, purposes)) return null;
  const { width, height } = media.getBoundingClientRect();
  placeholder.style.setProperty('--wait-width', `${Math.round(width)}px`);
  placeholder.style.setProperty('--wait-height', `${Math.round(height)}px`);
  const { style } = media;
  const waiting = {
    placeholder,
    display: style.getPropertyValue('display'),
    priority: style.getPropertyPriority('display'),
  };
  style.setProperty('display', 'none', 'important');
  media.before(placeholder);
  return waiting;
}

/** @returns looks at every element again */
export function createMedia(deps: MediaDeps): () => void {
  const started = new Set<Media>();
  const waiting = new Map<Media, Waiting>();
  const hydrating = new Set<Media>();

  function endWaiting(media: Media): void {
    const shown = waiting.get(media);
    if (!shown) return;
    waiting.delete(media);
    const hadFocus = shown.placeholder === doc.activeElement;
    shown.placeholder.remove();
    media.style.setProperty('display', shown.display, shown.priority);
    if (hadFocus) media.focus();
  }

  /** A sibling that is new would make a framework give up its hydration of the page. */
  function wait(media: Media, purposes: readonly string[]): void {
    const shown = waiting.get(media);
    if (shown) deps.fill(shown.placeholder, purposes);
    if (shown || hydrating.has(media)) return;
    hydrating.add(media);
    void untilHydrated(media).then(() => {
      hydrating.delete(media);
      if (!media.isConnected || started.has(media)) return;
      const next = attempt(() => place(media, purposes, deps));
      if (next) waiting.set(media, next);
    });
  }

  function look(media: Media): void {
    const purposes = purposesOf(media);
    const isIn = (ids: ReadonlySet<string>): boolean =>
      purposes.length > 0 && purposes.every((id) => ids.has(id));
    if (isIn(deps.startable())) {
      endWaiting(media);
      if (!started.has(media)) start(media);
      started.add(media);
    } else if (!isIn(deps.granted())) {
      if (started.delete(media)) stop(media);
      wait(media, purposes);
    }
  }

  return () => {
    // A page that took an element away left its placeholder.
    for (const media of waiting.keys()) if (!media.isConnected) guarded(() => endWaiting(media));
    for (const media of doc.querySelectorAll<Media>(GATED_MEDIA)) guarded(() => look(media));
  };
}
