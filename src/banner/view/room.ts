/**
 * What is focused must not lie wholly under the region (WCAG 2.2, 2.4.11): while it is shown, the page scrolls what
 * it is asked for above it, and has room for that at its end. Neither moves anything.
 */
export function makeRoom(layer: HTMLElement): void {
  const page = document.documentElement;
  const own = page.style.scrollPaddingBlockEnd;
  const room = document.createElement('gpd-consent-room');
  const GAP = 16;

  /** Out of the flow, it lengthens what can be scrolled and nothing else. */
  function place(height: number): void {
    Object.assign(room.style, {
      position: 'absolute',
      visibility: 'hidden',
      inset: 'auto',
      inlineSize: '1px',
    });
    room.style.blockSize = `${height}px`;
    room.style.top = '0';
    document.body.append(room);
    const top = room.getBoundingClientRect().top + scrollY;
    room.style.top = `${end() - top}px`;
  }

  /** Where the page's own boxes end. */
  const end = (): number => page.getBoundingClientRect().bottom + scrollY;

  function update(): void {
    room.remove();
    const height = layer.offsetHeight === 0 ? 0 : layer.offsetHeight + GAP;
    page.style.scrollPaddingBlockEnd = height === 0 ? own : `${height}px`;
    // A page that fits its window would get a scroll bar, and that moves everything.
    if (height > 0 && page.scrollHeight > page.clientHeight) place(height);
  }

  const watch = new ResizeObserver(update);
  watch.observe(layer);
  watch.observe(page);
}
