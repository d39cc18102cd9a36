import type { Facts } from './facts.ts';

/** What the sizes of window, page and screen say about who set them: a person's developer tools, or a driver. */

type Sizes = NonNullable<ReturnType<typeof sizesOf>>;

function sizesOf({ signals }: Facts) {
  const { width, height, innerWidth, innerHeight, outerWidth, outerHeight } = signals.screen ?? {};
  if (width == null || height == null || innerWidth == null || innerHeight == null) return null;
  if (outerWidth == null || outerHeight == null) return null;
  return { width, height, innerWidth, innerHeight, outerWidth, outerHeight };
}

export const debuggerAttached = ({ signals }: Facts): boolean =>
  signals.tells?.cdp === true || signals.worker?.cdp === true;

export function workerWithoutBrands({ signals }: Facts): boolean {
  const page = signals.page?.uaData?.brands;
  const worker = signals.worker?.uaData;
  if (page == null || page.length === 0 || worker == null) return false;
  return worker.brands == null || worker.brands.length === 0;
}

const windowFillsScreen = (s: Sizes): boolean => s.outerWidth === s.width && s.outerHeight === s.height;
const pageFillsScreen = (s: Sizes): boolean => s.innerWidth === s.width && s.innerHeight === s.height;

export function fillScreen(facts: Facts): boolean {
  const sizes = sizesOf(facts);
  return sizes !== null && windowFillsScreen(sizes) && pageFillsScreen(sizes);
}

/** Drivers set the page's size alone; the phone view of developer tools makes the window as large as its screen. */
export function isStaged(facts: Facts): boolean {
  if (facts.signals.media?.pointer !== 'coarse') return fillScreen(facts);
  const sizes = sizesOf(facts);
  return sizes !== null && !windowFillsScreen(sizes);
}

/** A debugger shows the page as on a phone: as large as its screen, and touched. */
function showsPhone(facts: Facts): boolean {
  const { agent, signals } = facts;
  const phone = agent.mobile && signals.media?.pointer === 'coarse';
  const sizes = sizesOf(facts);
  return phone && debuggerAttached(facts) && sizes !== null && windowFillsScreen(sizes);
}

/** The phone view of Chromium's developer tools, in which a person sees a page as a phone would. */
export const isPhoneView = (facts: Facts): boolean => showsPhone(facts) && workerWithoutBrands(facts);

/** A phone on a desk has its own processor, and the phone view leaves the worker without brands; drivers do neither. */
export function isStagedPhone(facts: Facts): boolean {
  const { page, worker } = facts.signals;
  const isPhone = /^(?:Linux (?:arm|aarch)|iP)/.test(page?.platform ?? '');
  return showsPhone(facts) && worker !== null && !workerWithoutBrands(facts) && !isPhone;
}

/** A page fills the screen only in full screen, and then its window does too. */
export function windowOutgrowsScreen(facts: Facts): boolean {
  const sizes = sizesOf(facts);
  if (sizes === null || !pageFillsScreen(sizes)) return false;
  return sizes.outerWidth > sizes.width || sizes.outerHeight > sizes.height;
}

/** Android that asks for the desktop site says Linux, and keeps its touch screen and its processor. */
export function isAndroidDesktopMode({ signals }: Facts): boolean {
  return (signals.page?.maxTouchPoints ?? 0) > 0 && /^Linux (?:arm|aarch)/.test(signals.page?.platform ?? '');
}
