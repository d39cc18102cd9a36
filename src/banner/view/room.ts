import { doc } from '../../browser/page.ts';

/**
 * Keeps focused elements and the page's last link visible (WCAG 2.2, 2.4.11): the page scrolls them above the
 * region and the button, and gets the room for it at its end. Nothing moves.
 * @returns a function to call after the page has replaced its root element
 */
export function createRoom(bannerParts: readonly HTMLElement[]): () => void {
  const room = doc.createElement('gpd-consent-room');
  const GAP = 16;
  let page: HTMLElement | null = null;
  let ownPadding = '';

  /**
   * Lengthens only the scrollable area: the element is out of the flow, and outside body, so no rule of the
   * page counts it.
   */
  function placeRoom(root: HTMLElement, height: number): void {
    // Important, because a page may hide every element that it does not know (`:not(:defined)`).
    const setStyle = (name: string, value: string): void => room.style.setProperty(name, value, 'important');
    setStyle('position', 'absolute');
    setStyle('visibility', 'hidden');
    setStyle('display', 'block');
    setStyle('inset', '0 auto auto');
    setStyle('inline-size', '1px');
    setStyle('block-size', `${height}px`);
    root.append(room);
    const pageEnd = root.getBoundingClientRect().bottom;
    setStyle('top', `${pageEnd - room.getBoundingClientRect().top}px`);
  }

  function update(): void {
    room.remove();
    if (!page) return;
    const tallest = Math.max(...bannerParts.map((part) => part.offsetHeight));
    const height = tallest === 0 ? 0 : tallest + GAP;
    page.style.scrollPaddingBlockEnd = height === 0 ? ownPadding : `${height}px`;
    // A page that fits its window gets no room: a scroll bar would appear and move everything.
    if (height > 0 && page.scrollHeight > page.clientHeight) placeRoom(page, height);
  }

  // In the next frame, because a scroll bar that appears changes the root again, and browsers report such a
  // loop as an error.
  const observer = new ResizeObserver(() => requestAnimationFrame(update));
  for (const part of bannerParts) observer.observe(part);
  return () => {
    const root = doc.documentElement;
    if (root === page) return;
    if (page) observer.unobserve(page);
    page = root;
    ownPadding = page.style.scrollPaddingBlockEnd;
    observer.observe(page);
  };
}
