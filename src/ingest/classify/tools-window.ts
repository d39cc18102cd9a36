import type { Facts } from './facts.ts';

/** What the sizes of window, page and screen say about who set them: a person's developer tools, or a driver. */

type Sizes = Readonly<
  Record<'width' | 'height' | 'innerWidth' | 'innerHeight' | 'outerWidth' | 'outerHeight', number>
>;

function sizesOf({ signals }: Facts): Sizes | null {
  const { width, height, innerWidth, innerHeight, outerWidth, outerHeight } = signals.screen ?? {};
  if (width == null || height == null || innerWidth == null || innerHeight == null) return null;
  if (outerWidth == null || outerHeight == null) return null;
  return { width, height, innerWidth, innerHeight, outerWidth, outerHeight };
}

const debuggerAttached = ({ signals }: Facts): boolean =>
  signals.tells?.cdp === true || signals.worker?.cdp === true;

export function workerWithoutBrands({ signals }: Facts): boolean {
  const page = signals.page?.uaData?.brands;
  const worker = signals.worker?.uaData;
  if (page == null || page.length === 0 || worker == null) return false;
  return worker.brands == null || worker.brands.length === 0;
}

const windowFillsScreen = (s: Sizes): boolean => s.outerWidth === s.width && s.outerHeight === s.height;
const pageFillsScreen = (s: Sizes): boolean => s.innerWidth === s.width && s.innerHeight === s.height;

/** Drivers set the page's size alone; the phone view of developer tools makes the window as large as its screen. */
export function isStaged(facts: Facts): boolean {
  const sizes = sizesOf(facts);
  if (sizes === null) return false;
  if (facts.signals.media?.pointer === 'coarse') return !windowFillsScreen(sizes);
  return windowFillsScreen(sizes) && pageFillsScreen(sizes);
}

/** The phone view of Chromium's developer tools, in which a person sees a page as a phone would. */
export function isPhoneView(facts: Facts): boolean {
  const { agent, signals } = facts;
  const phone = agent.mobile && signals.media?.pointer === 'coarse';
  const sizes = sizesOf(facts);
  return (
    phone &&
    debuggerAttached(facts) &&
    workerWithoutBrands(facts) &&
    sizes !== null &&
    windowFillsScreen(sizes)
  );
}

/** In CSS pixels; frames, tabs and side panels take less. */
const DOCKED = { beside: 240, below: 300 };

/** Developer tools that take their part of the window, or show the page as a phone's. */
export function showsDeveloperTools(facts: Facts): boolean {
  const sizes = sizesOf(facts);
  if (sizes === null || !debuggerAttached(facts)) return false;
  const docked =
    sizes.outerWidth - sizes.innerWidth > DOCKED.beside ||
    sizes.outerHeight - sizes.innerHeight > DOCKED.below;
  return docked || isPhoneView(facts);
}

/** A page fills the screen only in full screen, and then its window does too. */
export function windowOutgrowsScreen(facts: Facts): boolean {
  const sizes = sizesOf(facts);
  if (sizes === null || !pageFillsScreen(sizes)) return false;
  return sizes.outerWidth > sizes.width || sizes.outerHeight > sizes.height;
}
