/** A page that nobody has seen is nobody's visit: one that is prerendered, a tab in the background, a hidden frame. The banner has the same. */

/** A named element of the page may hide the document's own property. */
const ofDocument = (name: 'prerendering' | 'visibilityState' | 'documentElement'): unknown =>
  Reflect.get(Document.prototype, name, document);

const untilEvent = (type: string, isOver: () => boolean): Promise<void> =>
  new Promise((end) => {
    const look = (): void => {
      if (isOver()) end();
    };
    EventTarget.prototype.addEventListener.call(document, type, look);
    look();
  });

/** A tab that was shown and left counts too, in a browser that keeps a list of visibility states. */
const wasShown = (): boolean =>
  ofDocument('visibilityState') === 'visible' ||
  performance.getEntriesByType('visibility-state').some(({ name }) => name === 'visible');

/** A frame is not in sight if it is not displayed, has no size or is outside the window. */
const untilInSight = (): Promise<void> =>
  new Promise((end) => {
    const watch = new IntersectionObserver((entries) => {
      if (innerWidth * innerHeight === 0 || !entries.some(({ isIntersecting }) => isIntersecting)) return;
      watch.disconnect();
      removeEventListener('resize', look);
      end();
    });
    const look = (): void => {
      watch.disconnect();
      watch.observe(ofDocument('documentElement') as Element);
    };
    // A frame that gets a size meets no threshold: it was in sight with none.
    addEventListener('resize', look);
    look();
  });

async function waitUntilSeen(): Promise<void> {
  await untilEvent('prerenderingchange', () => ofDocument('prerendering') !== true);
  await untilEvent('visibilitychange', wasShown);
  if (window.parent !== window) await untilInSight();
}

let seen: Promise<void> | null = null;

/** Waits once: a page that was seen stays seen, also in a browser that keeps no list. */
export function untilSeen(): Promise<void> {
  seen ??= waitUntilSeen();
  return seen;
}
