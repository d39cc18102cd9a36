/**
 * What is focused must not lie wholly under the region or the button (WCAG 2.2, 2.4.11), and the page's last link not for
 * ever: the page scrolls what it is asked for above them, and has room for that at its end. Neither moves anything.
 */
export function makeRoom(covers: readonly HTMLElement[]): void {
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
    const tallest = Math.max(...covers.map((cover) => cover.offsetHeight));
    const height = tallest === 0 ? 0 : tallest + GAP;
    page.style.scrollPaddingBlockEnd = height === 0 ? own : `${height}px`;
    // A page that fits its window would get a scroll bar, and that moves everything.
    if (height > 0 && page.scrollHeight > page.clientHeight) place(height);
  }

  const watch = new ResizeObserver(update);
  for (const cover of covers) watch.observe(cover);
  watch.observe(page);
}
