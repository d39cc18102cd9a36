import { attempt } from '../../browser/page.ts';
import { type Brand, brands, each, flag, type Group, number, pause, text, texts, within } from './read.ts';

/** Collects the groups that the browser reports about itself: page, screen, media and time. */

/** User-Agent Client Hints (WICG): Chromium only, so absent from the DOM types. */
interface UaData {
  readonly brands: Iterable<Brand>;
  readonly mobile: boolean;
  readonly platform: string;
  getHighEntropyValues(hints: readonly string[]): Promise<Readonly<Record<string, unknown>>>;
}

/** Properties that some browsers have beyond the DOM types. */
interface RichNavigator {
  readonly userAgentData?: UaData;
  readonly deviceMemory?: number;
  readonly globalPrivacyControl?: boolean;
}

/** The navigator of a page or of a worker; a function, so that importing the agent touches nothing. */
export const nav = (): Navigator & RichNavigator => navigator;

type Page = Group<'page'>;

const HINTS = ['architecture', 'bitness', 'model', 'platformVersion', 'fullVersionList'] as const;
/**
 * Generous, because these values are part of the identity: with null a slow machine would be another visitor.
 */
const HINTS_MS = 1500;

async function readUaData(source: UaData | null): Promise<Page['uaData']> {
  if (!source) return null;
  const high = (await within(HINTS_MS, () => source.getHighEntropyValues(HINTS))) ?? {};
  return {
    brands: brands(() => source.brands),
    mobile: flag(() => source.mobile),
    platform: text(() => source.platform),
    ...each(text, () => high, 'architecture', 'bitness', 'model', 'platformVersion'),
    fullVersionList: brands(() => high['fullVersionList'] as Iterable<Brand>),
  };
}

export async function collectPage(): Promise<Page> {
  return {
    ...each(text, nav, 'userAgent', 'appVersion', 'platform', 'vendor', 'language'),
    languages: texts(() => nav().languages),
    webdriver: flag(() => nav().webdriver),
    ...each(number, nav, 'hardwareConcurrency', 'deviceMemory', 'maxTouchPoints'),
    pluginCount: number(() => nav().plugins.length),
    pdfViewer: flag(() => nav().pdfViewerEnabled),
    cookies: flag(() => nav().cookieEnabled),
    brave: flag(() => 'brave' in nav()),
    chromeObject: flag(() => typeof (window as { chrome?: unknown }).chrome === 'object'),
    gpc: flag(() => nav().globalPrivacyControl),
    uaData: await readUaData(attempt(() => nav().userAgentData)),
  };
}

export function collectScreen(): Group<'screen'> {
  return {
    ...each(number, () => screen, 'width', 'height', 'availWidth', 'availHeight'),
    ...each(number, () => window, 'innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'),
    colorDepth: number(() => screen.colorDepth),
    dpr: number(() => devicePixelRatio),
    orientation: text(() => screen.orientation.type),
    turns: flag(() => 'orientation' in window),
  };
}

const matches = (query: string): boolean => matchMedia(`(${query})`).matches;

/** The first value that the media feature matches. */
function firstOf<const V extends string>(feature: string, values: readonly V[]): V | null {
  return attempt(() => values.find((value) => matches(`${feature}: ${value}`)) ?? null);
}

export function collectMedia(): Group<'media'> {
  return {
    pointer: firstOf('pointer', ['fine', 'coarse', 'none']),
    hover: flag(() => matches('hover: hover')),
    colorGamut: firstOf('color-gamut', ['rec2020', 'p3', 'srgb']),
    hdr: flag(() => matches('dynamic-range: high')),
    forcedColors: flag(() => matches('forced-colors: active')),
  };
}

/** About a millisecond of spinning; for a coarser clock the function waits instead. */
const SPINS = 20_000;
const STEPS = 8;
const MAX_PAUSES = 6;
/** Far longer than the waits take, except in a hidden page. */
const WAIT_MS = 500;

/** Measures the smallest step of the clock, in milliseconds. */
async function measureClockStep(): Promise<number | null> {
  const distances: number[] = [];
  let last = performance.now();
  const readClock = (): void => {
    const now = performance.now();
    if (now !== last) distances.push(now - last);
    last = now;
  };
  for (let turn = 0; turn < SPINS && distances.length < STEPS; turn += 1) readClock();
  // Waits if the clock did not move while spinning: Firefox with resistFingerprinting steps by 16.67 ms.
  const pauses = distances.length === 0 ? MAX_PAUSES : 0;
  for (let turn = 0; turn < pauses; turn += 1) {
    await pause(4);
    readClock();
  }
  return number(() => Math.round(Math.min(...distances) * 1000) / 1000);
}

/** Temporal knows the zone at once; the first Intl formatter of a page costs 10 to 20 ms of main thread. */
function readTimeZone(): string {
  const { Temporal } = globalThis as { Temporal?: { Now: { timeZoneId(): string } } };
  return Temporal?.Now.timeZoneId() ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** `offsetMinutes` counts east of Greenwich, as RFC 3339 does and unlike getTimezoneOffset. */
export async function collectTime(): Promise<Group<'time'>> {
  return {
    zone: text(readTimeZone),
    offsetMinutes: number(() => 0 - new Date().getTimezoneOffset()),
    clockStepMs: await within(WAIT_MS, measureClockStep),
  };
}
