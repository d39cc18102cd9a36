/** The page that these scripts run in. Its elements, its scripts and its framework may be in their way. */

/**
 * The document's own properties. An element with a name hides them (HTML, 3.1.5): on a page with
 * `<img name="body">`, `document.body` is that image. The prototype has them unchanged. The proxy reads
 * `document` late: unit tests have none.
 */
export const doc = /* @__PURE__ */ new Proxy({} as Document, {
  get(_target, name) {
    const member: unknown = Reflect.get(Document.prototype, name, document);
    return typeof member === 'function'
      ? (...parameters: unknown[]): unknown => Reflect.apply(member, document, parameters)
      : member;
  },
});

/** GPC of the browser (https://w3c.github.io/gpc/): only `true` is a signal. */
export const browserGpc = (): boolean =>
  (navigator as { globalPrivacyControl?: unknown }).globalPrivacyControl === true;

/** The value, or null if the browser lacks it, forbids it or cannot read it. */
export function attempt<T>(read: () => T): NonNullable<T> | null {
  try {
    return read() ?? null;
  } catch {
    return null;
  }
}

/** Reports errors of the page (a tag manager, a patched DOM, Trusted Types): the next steps still run. */
export function guarded(work: () => void): void {
  try {
    work();
  } catch (error) {
    reportError(error);
  }
}

const untilEvent = (type: string, isOver: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const check = (): void => {
      if (isOver()) resolve();
    };
    doc.addEventListener(type, check);
    check();
  });

/**
 * Some browsers keep a list of visibility states: there, a tab that was shown once and left again counts too.
 */
const wasShown = (): boolean =>
  doc.visibilityState === 'visible' ||
  performance.getEntriesByType('visibility-state').some(({ name }) => name === 'visible');

/** A frame is not in sight if it is not displayed, has no size or is outside the window. */
const untilInSight = (): Promise<void> =>
  new Promise((resolve) => {
    const observer = new IntersectionObserver((entries) => {
      if (innerWidth * innerHeight === 0 || !entries.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      removeEventListener('resize', observe);
      resolve();
    });
    const observe = (): void => {
      observer.disconnect();
      observer.observe(doc.documentElement);
    };
    // A frame without a size already counts as intersecting, so the observer stays silent when it gets one.
    addEventListener('resize', observe);
    observe();
  });

async function waitUntilSeen(): Promise<void> {
  await untilEvent('prerenderingchange', () => (doc as { prerendering?: boolean }).prerendering !== true);
  await untilEvent('visibilitychange', wasShown);
  if (window.parent !== window) await untilInSight();
}

let seen: Promise<void> | null = null;

/**
 * A page that nobody has seen is nobody's visit: a prerendered page, a background tab, a hidden frame. It
 * waits once: a page that was seen stays seen, even in a browser that keeps no list of visibility states.
 */
export function untilSeen(): Promise<void> {
  seen ??= waitUntilSeen();
  return seen;
}

const POLL_MS = 50;
/** React never takes over an element that a page inserts as HTML, so the wait has an end. */
const MAX_POLLS = 200;

const hasKey = (target: object | null, prefix: string): boolean =>
  target !== null && Object.keys(target).some((key) => key.startsWith(prefix));

function isReactRoot(node: Node | null): boolean {
  return node !== null && (hasKey(node, '__reactContainer$') || isReactRoot(node.parentNode));
}

/** The page's script starts React, perhaps after the load event. */
const mayBeReact = (element: Element): boolean =>
  isReactRoot(element) ||
  '__NEXT_DATA__' in window ||
  '__next_f' in window ||
  '__reactRouterContext' in window;

/**
 * Waits until React has taken an element over; React 17 to 19 name its properties alike. A node that React
 * does not know makes it discard the page that the server rendered (error 418).
 */
export async function untilHydrated(element: Element): Promise<void> {
  if (doc.readyState !== 'complete')
    await new Promise((loaded) => addEventListener('load', loaded, { once: true }));
  for (let polls = 0; polls < MAX_POLLS; polls += 1) {
    // It polls at least twice: scripts of the page start React in a task after the load event.
    if (hasKey(element, '__reactFiber$') || (polls > 1 && !mayBeReact(element))) return;
    await new Promise((later) => setTimeout(later, POLL_MS));
  }
}
