import type { Facts } from './facts.ts';

/** A automation, T tamper, M medium, W weak (signals.md section 2). */
export type RuleKind = 'A' | 'T' | 'M' | 'W';

/** Facts that more than one rule reads. */
export type Fact = 'debugger' | 'worker-brands' | 'screen-size' | 'no-pointer' | 'no-graphics-hardware';

export interface Rule {
  readonly id: string;
  readonly kind: RuleKind;
  /** Added to suspectScore. */
  readonly weight: number;
  /** Plain words for the person concerned. */
  readonly text: string;
  readonly fires: (facts: Facts) => boolean;
  /** Set if other rules state the same fact: the heaviest of those that fire counts (`countFired`). */
  readonly fact?: Fact;
  /**
   * The kind that it counts as together with the other strong rules that fired, if an honest browser can have
   * this pattern.
   */
  readonly demote?: (others: readonly Rule[]) => RuleKind | null;
  /**
   * `usual`: developers have it besides their tools (another name by "Network conditions" or an add-on, a
   * remote desktop, a virtual machine, a second screen), so an attached debugger adds nothing to it.
   * `harmless`: it counts little with a debugger.
   */
  readonly withDebugger?: 'usual' | 'harmless';
  /** True if a setting or an add-on that gives the browser another name causes it. */
  readonly ofAnotherName?: true;
  /** True if it states the same as a missing pointer, or is judged separately. */
  readonly withNoPointer?: true;
}

/** Plain words for the person concerned, by the id of the rule. */
const TEXTS = {
  A1: 'The browser says that a program drives it (the WebDriver flag is set).',
  A2: 'The browser calls itself headless: it runs without a screen, as automation does.',
  A3: 'The page contains objects that only automation tools leave behind.',
  A4: 'The browser brands use a format that real browsers dropped years ago.',
  A5: 'The page and its background worker disagree about the browser brands, as disguised browsers do.',
  A7: 'Page and worker disagree about the browser brands, in a window that only a driver sets up like that.',
  A6: 'A frame was ready before it was attached to the page, which scripted browsers cause.',
  A8: 'A mouse button was pressed without any force, as programs press it and no mouse does.',
  A9: 'Permissions are given, and others denied, in a way that only a program can set.',
  T14: 'Mouse events are timed as on Linux, under the name of Windows.',
  T15: 'The reported screen orientation does not exist on this kind of device.',
  M12: 'The page counts as used, although nobody had pressed anything.',
  M1: 'The window is larger than its screen.',
  M2: 'A debugger is attached; open developer tools cause this too.',
  M11: 'A debugger shows the page as on a phone, in another way than developer tools do.',
  M4: 'Two answers about notifications contradict each other.',
  M5: 'A desktop browser without any pointing device.',
  M6: 'A desktop Chromium without the object that it always has.',
  M7: 'Graphics are drawn in software, as in a virtual machine.',
  M8: 'The request names no language, which browsers always do.',
  M9: 'A desktop browser with neither a pointing device nor graphics hardware.',
  M10: 'A debugger is attached to the page and not to its worker, as developer tools never are.',
  N2: 'The request lacks headers that this browser always sends.',
  W1: 'The screen is 800 by 600.',
  W2: 'Window, page and screen are exactly the same size.',
  W3: 'The page is larger than its window.',
  W4: 'A desktop browser without plug-ins.',
  W5: 'Graphics are drawn in software.',
  W6: 'The clock is set to UTC.',
  W9: 'The page runs inside an application and not in a browser.',
  W8: 'The browser has no 3D graphics.',
  N4: 'The connection comes from a hosting provider, as servers do and some private networks too.',
  N3: 'The request asks for another language than the page.',
  T1: 'The page and its background worker name different operating systems.',
  T2: 'The browser name and the platform value name different operating systems.',
  T3: 'The platform in the request differs from the platform in the page.',
  T4: 'The detailed browser data and the browser name disagree about the operating system.',
  T5: 'The short and the long list of browser brands name different browsers.',
  T6: 'The page and its background worker report different graphics chips.',
  T7: 'The browser does not behave like the engine that its name stands for.',
  T8: 'Functions that say which browser this is were replaced by the page or an add-on.',
  T9: 'The browser name in the request differs from the one in the page.',
  T10: 'The detailed browser data was emptied, which real browsers do not do.',
  T11: 'The graphics chip does not exist on this operating system.',
  T12: 'It says it is a phone, and has no touch screen.',
  T13: 'The page fills a screen that its own window does not fit on.',
  N1: 'The encrypted connection was opened by other software than the browser named.',
} as const;

/** Makes a rule fire only if this condition holds too. */
export const onlyWhere =
  (holds: Rule['fires']) =>
  (fires: Rule['fires']): Rule['fires'] =>
  (facts) =>
    fires(facts) && holds(facts);

export const rule = (
  id: keyof typeof TEXTS,
  kind: RuleKind,
  weight: number,
  fires: Rule['fires'],
  options: Omit<Rule, 'id' | 'kind' | 'weight' | 'text' | 'fires'> = {},
): Rule => ({ id, kind, weight, text: TEXTS[id], fires, ...options });

/** True when the rule with this id fired. */
export const hasFired = (fired: readonly Rule[], id: keyof typeof TEXTS): boolean =>
  fired.some((firedRule) => firedRule.id === id);

/*
 * Conditions of several rules: the sizes of window, page and screen show whether a person's developer tools
 * or a driver set them.
 */

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

/** Drivers set only the page's size; the phone view of developer tools makes the window fill its screen. */
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

/**
 * A phone on a desk has its own processor, and the phone view leaves the worker without brands; drivers do
 * neither.
 */
export function isStagedPhone(facts: Facts): boolean {
  const { page, worker } = facts.signals;
  const isPhone = /^(?:Linux (?:arm|aarch)|iP)/.test(page?.platform ?? '');
  return showsPhone(facts) && worker !== null && !workerWithoutBrands(facts) && !isPhone;
}

/** Frame and scroll bar of a window that a driver fitted to its page: 8 pixels in every measured run. */
const FITTED_PX = 32;

/**
 * A page fills the screen only in full screen, and then its window does too. The device toolbar of developer
 * tools sets the screen to the page and leaves the window as it was, much wider than the page.
 */
export function windowOutgrowsScreen(facts: Facts): boolean {
  const sizes = sizesOf(facts);
  if (sizes === null || !pageFillsScreen(sizes)) return false;
  if (sizes.outerWidth - sizes.innerWidth > FITTED_PX) return false;
  return sizes.outerWidth > sizes.width || sizes.outerHeight > sizes.height;
}

/** The names that their browsers send: televisions and set-top boxes, consoles, cars, kiosks, headsets. */
const APPLIANCES = [
  /\b(?:TV|\w*TV\b|SmartHub|NetCast|VIDAA|BRAVIA|VIERA|Tizen|Web0S|CE-HTML|CrKey|AFT[A-Z]|Roku|STB|MAG\d{3}|Set-?Top)/i,
  /\b(?:PlayStation|Xbox|Nintendo)/i,
  /\b(?:Tesla|QtCarBrowser|Automotive|MBUX)/i,
  /\b(?:\w*Kiosk|BrightSign|Signage)/i,
  /\b(?:Oculus|Quest|Pico|Wolvic|HoloLens|VR\b)/i,
];

/** A device without a pointer whose browser seldom says which engine it has. */
export const isAppliance = ({ signals }: Facts): boolean =>
  APPLIANCES.some((names) => names.test(signals.page?.userAgent ?? ''));

/** Android that asks for the desktop site says Linux, and keeps its touch screen and its processor. */
export function isAndroidDesktopMode({ signals }: Facts): boolean {
  return (signals.page?.maxTouchPoints ?? 0) > 0 && /^Linux (?:arm|aarch)/.test(signals.page?.platform ?? '');
}
