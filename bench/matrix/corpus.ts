import {
  type BrowserFingerprintWithHeaders,
  type Fingerprint,
  FingerprintGenerator,
} from 'fingerprint-generator';
import { FONTS } from '../../src/agent/collect/fonts.ts';
import { type Engine, readAgent } from '../../src/ingest/verdict/facts.ts';
import { readSignals } from '../../src/schema/signals.ts';
import { seededRandom } from '../lib/stats.ts';
import { judge } from './lib/judge.ts';
import type { Captured } from './lib/types.ts';

/**
 * Judges bundles of people: rows of `fingerprint-generator` (https://github.com/apify/fingerprint-suite), a Bayesian network
 * over fingerprints of real visitors. Values that a row lacks are those of an ordinary browser with the row's engine, so that
 * only the row's own values can make a rule fire:
 *
 * from the row      page.* (names, hints, cores, memory, touch, plug-ins, webdriver, GPC), screen.*, media.hdr,
 *                   graphics.vendor and renderer, the bits of `fonts` whose names it lists, and every header
 * from the page     worker.* and frame.*: the row has no worker, and an undisguised browser reports the same in all three
 * by engine         engine.*, media.colorGamut, page.chromeObject, graphics.audioSum, time.clockStepMs
 * by device         media.pointer and hover: coarse for phones and tablets, else fine
 * derived           inner sizes: rows were taken before layout and mostly say 0; then the outer size less the frame
 * random, seeded    graphics.canvasHash, time.zone
 * none              tells.*, input
 *
 * About 1 row in 500 is of a headless browser that says so in its brands or headers: these are counted separately.
 */

const MIX = {
  devices: ['desktop', 'mobile'],
  browsers: ['chrome', 'firefox', 'safari', 'edge'],
  operatingSystems: ['windows', 'macos', 'linux', 'android', 'ios'],
  locales: ['en-US', 'de-DE', 'fr-FR', 'hi-IN', 'pt-BR'],
} as const;

const ZONES = [
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'America/Sao_Paulo',
  'Asia/Tokyo',
] as const;
/** Title bar, tabs and address of a desktop browser, in CSS pixels. */
const FRAME_PX = 87;

const ENGINES: Readonly<Record<Engine, { evalLength: number; errorMessage: string; step: number }>> = {
  blink: { evalLength: 33, errorMessage: "Cannot read properties of null (reading 'a')", step: 0.1 },
  gecko: { evalLength: 37, errorMessage: 'can\'t access property "a" of null', step: 1 },
  webkit: { evalLength: 37, errorMessage: "null is not an object (evaluating 'null.a')", step: 1 },
  unknown: { evalLength: 33, errorMessage: '', step: 1 },
};

function fontBits(names: readonly string[]): string {
  const bits = FONTS.map((font) => (names.includes(font) ? '1' : '0')).join('');
  return (bits.match(/.{4}/g) ?? []).map((digit) => Number.parseInt(digit, 2).toString(16)).join('');
}

function pageOf({ navigator, pluginsData }: Fingerprint, engine: Engine): Record<string, unknown> {
  const { plugins } = (pluginsData ?? {}) as { plugins?: readonly unknown[] };
  const { globalPrivacyControl, pdfViewerEnabled } = navigator.extraProperties ?? {};
  const { userAgentData: hints } = navigator as {
    userAgentData: Fingerprint['navigator']['userAgentData'] | null;
  };
  return {
    userAgent: navigator.userAgent,
    appVersion: navigator.appVersion,
    platform: navigator.platform,
    vendor: navigator.vendor,
    language: navigator.language,
    languages: navigator.languages,
    webdriver: String(navigator.webdriver) === 'true',
    hardwareConcurrency: navigator.hardwareConcurrency,
    deviceMemory: navigator.deviceMemory,
    maxTouchPoints: navigator.maxTouchPoints,
    pluginCount: plugins?.length ?? null,
    pdfViewer: pdfViewerEnabled,
    cookies: true,
    brave: hints?.brands.some(({ brand }) => brand === 'Brave') ?? false,
    chromeObject: engine === 'blink',
    gpc: globalPrivacyControl,
    uaData: hints && {
      brands: hints.brands,
      mobile: hints.mobile,
      platform: hints.platform,
      architecture: hints.architecture,
      bitness: hints.bitness,
      model: hints.model,
      platformVersion: hints.platformVersion,
      fullVersionList: hints.fullVersionList,
    },
  };
}

function screenOf({ screen }: Fingerprint, phone: boolean): Record<string, unknown> {
  const { innerWidth, innerHeight, outerWidth, outerHeight } = screen;
  return {
    width: screen.width,
    height: screen.height,
    availWidth: screen.availWidth,
    availHeight: screen.availHeight,
    innerWidth: innerWidth || outerWidth,
    innerHeight: innerHeight || Math.max(0, outerHeight - (phone ? 0 : FRAME_PX)),
    outerWidth,
    outerHeight,
    colorDepth: screen.colorDepth,
    dpr: screen.devicePixelRatio,
  };
}

type Random = () => number;

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

function signalsOf(fingerprint: Fingerprint, random: Random): Record<string, unknown> {
  const page = pageOf(fingerprint, 'unknown');
  const agent = readAgent(fingerprint.navigator.userAgent);
  const phone = agent.mobile || agent.os === 'android';
  const { evalLength, errorMessage, step } = ENGINES[agent.engine];
  const { vendor = null, renderer = null } = (fingerprint.videoCard ?? {}) as {
    vendor?: string;
    renderer?: string;
  };
  const { userAgent, platform, languages, hardwareConcurrency, webdriver } = page;
  const uaData = page['uaData'] as { brands: unknown; platform: unknown } | null;
  return {
    collector: '1',
    page: { ...page, chromeObject: agent.engine === 'blink' },
    worker: {
      userAgent,
      platform,
      languages,
      hardwareConcurrency,
      webdriver: null,
      renderer,
      uaData: uaData && { brands: uaData.brands, platform: uaData.platform },
      cdp: false,
    },
    frame: { webdriver, platform, userAgent, srcdocPreattached: false },
    screen: screenOf(fingerprint, phone),
    media: {
      pointer: phone ? 'coarse' : 'fine',
      hover: !phone,
      colorGamut: agent.os === 'macos' || agent.os === 'ios' ? 'p3' : 'srgb',
      hdr: fingerprint.screen.hasHDR,
      forcedColors: false,
    },
    graphics: {
      vendor,
      renderer,
      canvasHash: Math.floor(random() * 2 ** 48).toString(16),
      canvasStable: true,
      canvasFlatBadPixels: 0,
      audioSum: agent.engine === 'blink' ? 124.04347776696522 : 35.7,
      audioStable: true,
    },
    fonts: fontBits(fingerprint.fonts ?? []),
    engine: { evalLength, errorMessage, math: null },
    time: { zone: pick(random, ZONES), offsetMinutes: 60, clockStepMs: step },
    tells: { globals: [], cdp: false, notificationMismatch: false, patched: [], processType: null },
    input: null,
  };
}

/** Turns the row's headers, which are those of a navigation, into those of the agent's fetch. */
function headersOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const fetchHeaders = lower.filter(
    ([name]) => !['upgrade-insecure-requests', 'sec-fetch-user', 'te'].includes(name),
  );
  const fetched = Object.fromEntries(fetchHeaders);
  if (fetched['sec-fetch-mode'] !== undefined)
    Object.assign(fetched, { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' });
  return { ...fetched, accept: '*/*', 'content-type': 'application/json' };
}

/** Replaces Math.random while `make` runs, because the generator takes no seed. */
function withSeed<T>(random: Random, make: () => T): T {
  const { random: before } = Math;
  Math.random = random;
  try {
    return make();
  } finally {
    Math.random = before;
  }
}

function bundleOf({ fingerprint, headers }: BrowserFingerprintWithHeaders, random: Random): Captured {
  const { signals, malformed } = readSignals(signalsOf(fingerprint, random));
  if (malformed) throw new Error(`a row does not fit the schema: ${JSON.stringify(fingerprint)}`);
  return { signals, headers: headersOf(headers as Record<string, string>) };
}

/** True when its names, brands or headers say it is automated. */
function saysHeadless({ signals, headers }: Captured): boolean {
  return /HeadlessChrome/.test(JSON.stringify([signals.page, headers]));
}

export interface CorpusResult {
  readonly seed: number;
  /** Number of rows that were judged. */
  readonly rows: number;
  /** Number of other rows, which call themselves headless. */
  readonly headless: number;
  readonly byClass: Readonly<Record<string, number>>;
  /** Number of rows in which a rule fired, by its id. */
  readonly byRule: Readonly<Record<string, number>>;
  /** The rules of every row that was called automation. */
  readonly automation: readonly string[];
}

interface Tally {
  readonly byClass: Record<string, number>;
  readonly byRule: Record<string, number>;
  readonly automation: string[];
}

function countRow({ byClass, byRule, automation }: Tally, bundle: Captured): void {
  const verdict = judge(bundle);
  const rules = verdict.rules.map(({ id }) => id);
  byClass[verdict.class] = (byClass[verdict.class] ?? 0) + 1;
  for (const id of rules) byRule[id] = (byRule[id] ?? 0) + 1;
  if (verdict.class === 'undeclared_automation') automation.push(rules.join(' '));
}

/** Calls `take` with each row that does not call itself headless. @returns the number of those that do */
function eachPerson(rows: number, seed: number, take: (bundle: Captured) => void): number {
  const random = seededRandom(seed);
  let headless = 0;
  withSeed(random, () => {
    const generator = new FingerprintGenerator({
      devices: [...MIX.devices],
      browsers: [...MIX.browsers],
      operatingSystems: [...MIX.operatingSystems],
      locales: [...MIX.locales],
    });
    for (let row = 0; row < rows; ) {
      const bundle = bundleOf(generator.getFingerprint(), random);
      if (saysHeadless(bundle)) {
        headless += 1;
        continue;
      }
      take(bundle);
      row += 1;
    }
  });
  return headless;
}

export function judgeCorpus(rows: number, seed: number): CorpusResult {
  const tally: Tally = { byClass: {}, byRule: {}, automation: [] };
  const headless = eachPerson(rows, seed, (bundle) => countRow(tally, bundle));
  return { seed, rows, headless, ...tally };
}
