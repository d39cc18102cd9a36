import type { Facts } from './facts.ts';
import { type RuleId, ruleText } from './verdict-words.ts';

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

/** Makes a rule fire only if this condition holds too. */
export const onlyWhere =
  (holds: Rule['fires']) =>
  (fires: Rule['fires']): Rule['fires'] =>
  (facts) =>
    fires(facts) && holds(facts);

export const rule = (
  id: RuleId,
  kind: RuleKind,
  weight: number,
  fires: Rule['fires'],
  options: Omit<Rule, 'id' | 'kind' | 'weight' | 'text' | 'fires'> = {},
): Rule => ({ id, kind, weight, text: ruleText(id), fires, ...options });

/** True when the rule with this id fired. */
export const hasFired = (fired: readonly Rule[], id: RuleId): boolean =>
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
