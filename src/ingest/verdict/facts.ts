import { type NetworkFacts, type RequestTier, readNetwork } from '../../http/request.ts';
import { type ReadSignals, type Signals, saysAnything } from '../../schema/signals.ts';

/**
 * The facts that rules and identity are computed from: the browser's report about itself, and the network's
 * view of it.
 */

/* Facts of a user-agent string: never a version finer than the major. */

export type Engine = 'blink' | 'gecko' | 'webkit' | 'unknown';
export type OsFamily = 'windows' | 'macos' | 'ios' | 'android' | 'chromeos' | 'linux' | 'unknown';
export type Browser = 'chrome' | 'firefox' | 'safari' | 'other';

export interface AgentFacts {
  readonly engine: Engine;
  readonly browser: Browser;
  /** Major version of `browser`; 0 if it is unknown. */
  readonly major: number;
  readonly os: OsFamily;
  readonly mobile: boolean;
}

const OS_PATTERNS: readonly (readonly [RegExp, OsFamily])[] = [
  [/\b(?:iPhone|iPad|iPod)\b/, 'ios'],
  [/\bAndroid\b/, 'android'],
  [/\bCrOS\b|\bChrom(?:e|ium) OS\b/, 'chromeos'],
  [/\bWindows\b|^Win(?:32|64)$/, 'windows'],
  [/\bMac(?:intosh|Intel|OS| OS X)?\b/i, 'macos'],
  [/\b(?:Linux|X11)\b/, 'linux'],
];

/** OS family of a user-agent string, of `navigator.platform` or of a client hint. */
export function osFamily(text: string | null | undefined): OsFamily {
  if (text == null) return 'unknown';
  return OS_PATTERNS.find(([pattern]) => pattern.test(text))?.[1] ?? 'unknown';
}

function major(text: string, product: RegExp): number {
  return Number(product.exec(text)?.[1] ?? 0);
}

/** Every browser on iOS uses WebKit, under any name. */
export function readAgent(userAgent: string | null | undefined): AgentFacts {
  const text = userAgent ?? '';
  const os = osFamily(text);
  const ios = os === 'ios';
  const mobile = ios || /\bMobile\b/.test(text);
  const chrome = major(text, /\b(?:Headless)?Chrome\/(\d{1,4})/);
  const firefox = major(text, /\bFirefox\/(\d{1,4})/);
  if (chrome > 0 && !ios) return { engine: 'blink', browser: 'chrome', major: chrome, os, mobile };
  if (firefox > 0 && !ios) return { engine: 'gecko', browser: 'firefox', major: firefox, os, mobile };
  if (ios || /AppleWebKit\//.test(text))
    return { engine: 'webkit', browser: 'safari', major: major(text, /Version\/(\d{1,4})/), os, mobile };
  return { engine: 'unknown', browser: 'other', major: 0, os, mobile };
}

/**
 * Privacy defenses (signals.md section 3): recognised only by at least three concordant marks with the right
 * engine, otherwise "I am Tor" would be a bypass. A defense never exempts an A rule.
 */
export type Defense = 'firefox-rfp' | 'brave';

const MARKS_NEEDED = 3;

const agree = (marks: readonly boolean[]): boolean => marks.filter(Boolean).length >= MARKS_NEEDED;

function isNear(value: number | null | undefined, target: number): boolean {
  return value != null && Math.abs(value - target) < target * 0.05;
}

function allScreensEqual(signals: Signals): boolean {
  const screen = signals.screen;
  if (screen?.width == null || screen.height == null) return false;
  const widths = [screen.width, screen.outerWidth, screen.innerWidth];
  const heights = [screen.height, screen.outerHeight, screen.innerHeight];
  return (
    widths.every((width) => width === screen.width) && heights.every((height) => height === screen.height)
  );
}

function isRfp(signals: Signals, agent: AgentFacts): boolean {
  if (agent.engine !== 'gecko') return false;
  const { graphics, time, media, page } = signals;
  return agree([
    (graphics?.canvasFlatBadPixels ?? 0) > 0,
    graphics?.renderer === 'Mozilla',
    isNear(time?.clockStepMs, 16.67),
    time?.zone === 'UTC' || time?.zone === 'Atlantic/Reykjavik',
    page?.maxTouchPoints === 5 && media?.pointer === 'fine',
    allScreensEqual(signals),
  ]);
}

function isBrave(signals: Signals, agent: AgentFacts): boolean {
  if (agent.engine !== 'blink') return false;
  const { page, graphics } = signals;
  const branded = page?.uaData?.brands?.some((entry) => entry.brand === 'Brave') ?? false;
  return agree([
    page?.brave === true || branded,
    page?.gpc === true,
    graphics?.canvasStable === false || (graphics?.canvasFlatBadPixels ?? 0) > 0,
    graphics?.audioStable === false,
  ]);
}

export function recogniseDefenses(signals: Signals, agent: AgentFacts): readonly Defense[] {
  const defenses: Defense[] = [];
  if (isRfp(signals, agent)) defenses.push('firefox-rfp');
  if (isBrave(signals, agent)) defenses.push('brave');
  return defenses;
}

/** Everything a rule may look at. */
export interface Facts {
  readonly signals: Signals;
  readonly network: NetworkFacts;
  /** Read from `navigator.userAgent`, or from the header if the bundle lacks it. */
  readonly agent: AgentFacts;
  /** Privacy defenses that were recognised; they exempt only the rules that name them. */
  readonly defenses: readonly Defense[];
  /** A group was badly typed, or screen, media or graphics is missing: never `human`. */
  readonly incomplete: boolean;
}

/** A bundle must not become `human` by omission: without these groups the rules have nothing to check. */
function isIncomplete({ page, screen, media, graphics }: Signals, malformed: boolean): boolean {
  const sized = screen?.width != null && screen.height != null;
  return malformed || page?.userAgent == null || !sized || !saysAnything(media) || !saysAnything(graphics);
}

/** Combines the network tier and the signals with the privacy defenses that explain them. */
export function readFacts({ signals, malformed }: ReadSignals, tier: RequestTier): Facts {
  const network = readNetwork(tier);
  const agent = readAgent(signals.page?.userAgent ?? network.userAgent);
  const defenses = recogniseDefenses(signals, agent);
  return { signals, network, agent, defenses, incomplete: isIncomplete(signals, malformed) };
}
