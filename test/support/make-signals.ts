import type { NetworkFacts } from '../../src/http/request.ts';
import type { Facts } from '../../src/ingest/verdict/facts.ts';
import { readAgent, recogniseDefenses } from '../../src/ingest/verdict/facts.ts';
import { readSignals, type Signals } from '../../src/schema/signals.ts';

/** Creates the signals of an ordinary browser, with changes that a test needs. */

const USER_AGENT =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';

const BRANDS = [
  { brand: 'Chromium', version: '142' },
  { brand: 'Not_A Brand', version: '99' },
];

/** Returns the report of Chromium on a Linux desktop, without anything suspicious. */
export function createRawSignals(): Record<string, Record<string, unknown>> & { fonts: never } {
  const uaData = {
    brands: BRANDS,
    mobile: false,
    platform: 'Linux',
    architecture: 'x86',
    bitness: '64',
    model: '',
  };
  const raw = {
    page: {
      userAgent: USER_AGENT,
      platform: 'Linux x86_64',
      vendor: 'Google Inc.',
      language: 'en-GB',
      languages: ['en-GB', 'en'],
      webdriver: false,
      hardwareConcurrency: 8,
      deviceMemory: 8,
      maxTouchPoints: 0,
      chromeObject: true,
      gpc: false,
      uaData: { ...uaData, fullVersionList: BRANDS },
    },
    worker: { userAgent: USER_AGENT, platform: 'Linux x86_64', webdriver: false, uaData: { brands: BRANDS } },
    frame: { webdriver: false, userAgent: USER_AGENT, srcdocPreattached: false },
    screen: { width: 2560, height: 1440, innerWidth: 1800, innerHeight: 1200, colorDepth: 24, dpr: 1 },
    media: { pointer: 'fine', hover: true, colorGamut: 'srgb', hdr: false, forcedColors: false },
    graphics: {
      renderer: 'ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6)',
      canvasHash: 'c0ffee',
      canvasStable: true,
      canvasFlatBadPixels: 0,
      audioSum: 124.043,
      audioStable: true,
    },
    fonts: '0f3c',
    engine: { evalLength: 33, errorMessage: 'x is not a function', math: '1.4456734532' },
    time: { zone: 'Europe/Paris', offsetMinutes: -60, clockStepMs: 0.1 },
    tells: { globals: [], cdp: false, notificationMismatch: false, patched: [] },
    input: null,
  };
  return raw as unknown as Record<string, Record<string, unknown>> & { fonts: never };
}

/** Merges changes into the groups of that report; a group set to null is missing. */
export function createSignals(
  changes: Record<string, Record<string, unknown> | string | null> = {},
): Signals {
  const raw: Record<string, unknown> = createRawSignals();
  for (const [group, change] of Object.entries(changes)) {
    const merge = typeof change === 'object' && change !== null;
    raw[group] = merge ? { ...(raw[group] as object | null), ...change } : change;
  }
  const { signals, malformed } = readSignals(raw);
  if (malformed) throw new Error('createSignals made malformed signals');
  return signals;
}

function createNetwork(over: Partial<NetworkFacts> = {}): NetworkFacts {
  return {
    userAgent: USER_AGENT,
    acceptLanguage: 'en-GB,en;q=0.9',
    secChUa: '"Chromium";v="142", "Not_A Brand";v="99"',
    secChUaPlatform: '"Linux"',
    secFetchSite: 'same-origin',
    ja4: null,
    hosting: null,
    https: true,
    ...over,
  };
}

/** Creates the input of the rules from the signals and headers of that browser. */
export function createFacts(
  changes: Parameters<typeof createSignals>[0] = {},
  network: Partial<NetworkFacts> = {},
  over: Partial<Facts> = {},
): Facts {
  const signals = createSignals(changes);
  const agent = readAgent(signals.page?.userAgent);
  const defenses = recogniseDefenses(signals, agent);
  return { signals, network: createNetwork(network), agent, defenses, incomplete: false, ...over };
}
