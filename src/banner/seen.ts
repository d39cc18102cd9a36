import { doc } from './doc.ts';

/** A page that nobody has seen is nobody's visit: one that is prerendered, a tab in the background, a hidden frame. The agent has the same. */

const untilEvent = (type: string, isOver: () => boolean): Promise<void> =>
  new Promise((end) => {
    const look = (): void => {
      if (isOver()) end();
    };
    doc.addEventListener(type, look);
    look();
  });

/** A tab that was shown and left counts too, in a browser that keeps a list of visibility states. */
const wasShown = (): boolean =>
  doc.visibilityState === 'visible' ||
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
      watch.observe(doc.documentElement);
    };
    // A frame that gets a size meets no threshold: it was in sight with none.
    addEventListener('resize', look);
    look();
  });

export async function untilSeen(): Promise<void> {
  await untilEvent('prerenderingchange', () => (doc as { prerendering?: boolean }).prerendering !== true);
  await untilEvent('visibilitychange', wasShown);
  if (window.parent !== window) await untilInSight();
}
