/** A page under measurement reports it. */
export interface Sight {
  /** Milliseconds from the start of the navigation to the frame that has the banner in the window. */
  readonly at: number;
  /** Milliseconds from the start of the navigation to the first contentful paint. */
  readonly paint: number;
  /** The layout shift of the page until then and in the half second after. */
  readonly shift: number;
}

/** Runs in the page before its scripts. */
export function reportFirstSight(selector: string): void {
  let shift = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) shift += (entry as PerformanceEntry & { value: number }).value;
  }).observe({ type: 'layout-shift', buffered: true });
  /** The last part of `a >>> b` is inside the shadow root of the first. */
  const find = (): Element | null => {
    const [outer = '', inner] = selector.split(' >>> ');
    const host = document.querySelector(outer);
    return inner === undefined ? host : (host?.shadowRoot?.querySelector(inner) ?? null);
  };
  const isInSight = (element: Element): boolean => {
    const { width, height, top, bottom } = element.getBoundingClientRect();
    const isOpaque = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    return isOpaque && width > 0 && height > 0 && bottom > 0 && top < innerHeight;
  };
  const look = (): void => {
    const element = find();
    if (!element || !isInSight(element)) {
      requestAnimationFrame(look);
      return;
    }
    // The layout of this frame is known by now, and its paint follows.
    const at = performance.now();
    setTimeout(() => {
      const paint = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN;
      Object.assign(window, { firstSight: { at, paint, shift } });
    }, 500);
  };
  requestAnimationFrame(look);
}
