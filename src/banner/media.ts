import { attempt, doc, guarded, untilHydrated } from '../browser/page.ts';
import { GATED_MEDIA, purposesOf } from './gated.ts';
import { fillWait, type WaitDeps } from './view/wait.ts';

/**
 * Loads `<iframe data-purpose="…" data-src="…">`, images, videos and sounds while every purpose is granted;
 * else shows a placeholder.
 */

type Media = HTMLIFrameElement | HTMLImageElement | HTMLMediaElement;

/** A tracking pixel has no room for a placeholder. */
const MIN_SIDE_PX = 64;

export interface MediaDeps {
  /** Empty while the ledger is asked, unlike `granted`: what is loaded stays, and nothing new starts. */
  readonly startable: () => ReadonlySet<string>;
  readonly granted: () => ReadonlySet<string>;
  /** The words and acts of a placeholder; null while the terms are unknown. */
  readonly wait: () => WaitDeps | null;
}

/** The element gets the page's `display` and its priority back when its placeholder is removed. */
interface Covered {
  readonly placeholder: HTMLElement;
  readonly display: string;
  readonly priority: string;
}

function startMedia(media: Media): void {
  const { src = '', srcset } = media.dataset;
  if (srcset !== undefined && media instanceof HTMLImageElement) media.srcset = srcset;
  media.src = src;
}

function stopMedia(media: Media): void {
  // A frame keeps its page when the attribute is removed, so it is sent to an empty one first.
  if (media instanceof HTMLIFrameElement) media.contentWindow?.location.replace('about:blank');
  media.removeAttribute('src');
  media.removeAttribute('srcset');
  if (media instanceof HTMLMediaElement) media.load();
}

const hasRoom = (media: Media): boolean =>
  ['width', 'height'].every((name) => Number(media.getAttribute(name) ?? MIN_SIDE_PX) >= MIN_SIDE_PX) &&
  media.getClientRects().length > 0;

/** @returns false while the texts of these purposes are unknown */
function fill(placeholder: HTMLElement, purposes: readonly string[], { wait }: MediaDeps): boolean {
  const deps = wait();
  return deps !== null && fillWait(placeholder, purposes, deps);
}

function insertPlaceholder(media: Media, purposes: readonly string[], deps: MediaDeps): Covered | null {
  const placeholder = doc.createElement('gpd-consent-wait');
  if (!hasRoom(media) || !fill(placeholder, purposes, deps)) return null;
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

/** @returns a function that starts, stops or covers every gated element by the present choices */
export function createMedia(deps: MediaDeps): () => void {
  const started = new Set<Media>();
  const waiting = new Map<Media, Covered>();
  const hydrating = new Set<Media>();

  function removePlaceholder(media: Media): void {
    const shown = waiting.get(media);
    if (!shown) return;
    waiting.delete(media);
    const hadFocus = shown.placeholder === doc.activeElement;
    shown.placeholder.remove();
    media.style.setProperty('display', shown.display, shown.priority);
    if (hadFocus) media.focus();
  }

  /** Waits for hydration: a new sibling would make a framework discard the page that its server wrote. */
  function showPlaceholder(media: Media, purposes: readonly string[]): void {
    const shown = waiting.get(media);
    if (shown) fill(shown.placeholder, purposes, deps);
    if (shown || hydrating.has(media)) return;
    hydrating.add(media);
    void untilHydrated(media).then(() => {
      hydrating.delete(media);
      if (!media.isConnected || started.has(media)) return;
      const next = attempt(() => insertPlaceholder(media, purposes, deps));
      if (next) waiting.set(media, next);
    });
  }

  function updateMedia(media: Media): void {
    const purposes = purposesOf(media);
    const isIn = (ids: ReadonlySet<string>): boolean =>
      purposes.length > 0 && purposes.every((id) => ids.has(id));
    if (isIn(deps.startable())) {
      removePlaceholder(media);
      if (!started.has(media)) startMedia(media);
      started.add(media);
    } else if (!isIn(deps.granted())) {
      if (started.delete(media)) stopMedia(media);
      showPlaceholder(media, purposes);
    }
  }

  return () => {
    // A page that removed an element has left its placeholder.
    for (const media of waiting.keys()) if (!media.isConnected) guarded(() => removePlaceholder(media));
    for (const media of doc.querySelectorAll<Media>(GATED_MEDIA)) guarded(() => updateMedia(media));
  };
}
