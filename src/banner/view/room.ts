import { doc } from '../../browser/page.ts';

/**
 * Keeps focused elements and the page's last link visible (WCAG 2.2, 2.4.11): the page scrolls them above the
 * region and the button, and has room for that at its end. Nothing moves.
 * @returns a function for a page whose root was replaced
 */
export function createRoom(covers: readonly HTMLElement[]): () => void {
  const room = doc.createElement('gpd-consent-room');
  const GAP = 16;
  let page: HTMLElement | null = null;
  let ownPadding = '';

  /** Out of the flow, it lengthens what can be scrolled and nothing else. Next to body: no rule of the page counts it. */
  function place(root: HTMLElement, height: number): void {
    // Important, because a page may hide every element that is not defined.
    const setStyle = (name: string, value: string): void => room.style.setProperty(name, value, 'important');
    setStyle('position', 'absolute');
    setStyle('visibility', 'hidden');
    setStyle('display', 'block');
    setStyle('inset', '0 auto auto');
    setStyle('inline-size', '1px');
    setStyle('block-size', `${height}px`);
    root.append(room);
    // The end of the page's boxes.
    const end = root.getBoundingClientRect().bottom;
    setStyle('top', `${end - room.getBoundingClientRect().top}px`);
  }

  function update(): void {
    room.remove();
    if (!page) return;
    const tallest = Math.max(...covers.map((cover) => cover.offsetHeight));
    const height = tallest === 0 ? 0 : tallest + GAP;
    page.style.scrollPaddingBlockEnd = height === 0 ? ownPadding : `${height}px`;
    // A page that fits its window would get a scroll bar, and that moves everything.
    if (height > 0 && page.scrollHeight > page.clientHeight) place(page, height);
  }

  // Not at once: a scroll bar that appears or disappears changes the root, and browsers report that as an error of the page.
  const watch = new ResizeObserver(() => requestAnimationFrame(update));
  for (const cover of covers) watch.observe(cover);
  return () => {
    const root = doc.documentElement;
    if (root === page) return;
    if (page) watch.unobserve(page);
    page = root;
    ownPadding = page.style.scrollPaddingBlockEnd;
    watch.observe(page);
  };
}
