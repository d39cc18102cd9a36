import { DAY } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import type { SealedBundle } from '../schema/bundle.ts';
import { sealTo } from '../seal/seal.ts';

/**
 * The signals of the browsers that visit the demo's shop (signals.md section 1), and their sealed bundles.
 */

const CHROME = '141';
const USER_AGENT = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROME}.0.0.0 Safari/537.36`;
const HEADLESS = USER_AGENT.replace('Chrome/', 'HeadlessChrome/');
const RENDERER = 'ANGLE (Intel, Intel(R) UHD Graphics 620 (0x00005917) Direct3D11 vs_5_0 ps_5_0, D3D11)';
const BRANDS = [
  { brand: 'Google Chrome', version: CHROME },
  { brand: 'Not?A_Brand', version: '8' },
  { brand: 'Chromium', version: CHROME },
];

export interface DemoVisit {
  readonly headers: Readonly<Record<string, string>>;
  readonly signals: Readonly<Record<string, Readonly<Record<string, unknown>> | string>>;
}

const headersOf = (userAgent: string): DemoVisit['headers'] => ({
  'user-agent': userAgent,
  'accept-language': 'en-GB,en;q=0.9,de;q=0.8',
  'sec-ch-ua': BRANDS.map(({ brand, version }) => `"${brand}";v="${version}"`).join(', '),
  'sec-ch-ua-mobile': '?0',
  'sec-ch-ua-platform': '"Windows"',
});

const LANGUAGES = ['en-GB', 'en', 'de'];
const SIGNALS: DemoVisit['signals'] = {
  collector: '1',
  page: {
    userAgent: USER_AGENT,
    appVersion: USER_AGENT.replace('Mozilla/', ''),
    platform: 'Win32',
    vendor: 'Google Inc.',
    language: 'en-GB',
    languages: LANGUAGES,
    webdriver: false,
    hardwareConcurrency: 8,
    deviceMemory: 8,
    maxTouchPoints: 0,
    pluginCount: 5,
    pdfViewer: true,
    cookies: true,
    brave: false,
    chromeObject: true,
    gpc: null,
    uaData: {
      brands: BRANDS,
      mobile: false,
      platform: 'Windows',
      architecture: 'x86',
      bitness: '64',
      model: '',
      platformVersion: '15.0.0',
      fullVersionList: [
        { brand: 'Google Chrome', version: `${CHROME}.0.7390.55` },
        { brand: 'Not?A_Brand', version: '8.0.0.0' },
        { brand: 'Chromium', version: `${CHROME}.0.7390.55` },
      ],
    },
  },
  worker: {
    userAgent: USER_AGENT,
    platform: 'Win32',
    languages: LANGUAGES,
    hardwareConcurrency: 8,
    webdriver: null,
    renderer: RENDERER,
    uaData: { brands: BRANDS, platform: 'Windows' },
    cdp: false,
  },
  frame: { webdriver: false, platform: 'Win32', userAgent: USER_AGENT, srcdocPreattached: false },
  screen: {
    width: 1920,
    height: 1080,
    availWidth: 1920,
    availHeight: 1032,
    innerWidth: 1423,
    innerHeight: 851,
    outerWidth: 1440,
    outerHeight: 980,
    colorDepth: 24,
    dpr: 1.25,
    orientation: 'landscape-primary',
    turns: false,
  },
  media: { pointer: 'fine', hover: true, colorGamut: 'srgb', hdr: false, forcedColors: false },
  graphics: {
    vendor: 'Google Inc. (Intel)',
    renderer: RENDERER,
    canvasStable: true,
    canvasFlatBadPixels: 0,
    audioSum: 124.04347527516074,
    audioStable: true,
  },
  fonts: 'ffd2c7a1900f',
  engine: {
    evalLength: 33,
    errorMessage: "Cannot read properties of null (reading 'a')",
    math: '5f1c0e9a77b24d10',
  },
  time: { zone: 'Europe/Berlin', offsetMinutes: 60, clockStepMs: 0.1 },
  tells: { globals: [], cdp: false, notificationMismatch: false, patched: [], processType: null },
  input: { moves: 214, downUpMs: 96, forceless: false, offGrid: null },
};

const changeGroup = ({ signals }: Pick<DemoVisit, 'signals'>, group: string, values: object) => ({
  ...(signals[group] as object),
  ...values,
});

/** A person's Chrome on a Windows laptop. @param device any text: another text makes another device id */
export function personBrowser(device: string): DemoVisit {
  const graphics = changeGroup({ signals: SIGNALS }, 'graphics', { canvasHash: device });
  return { headers: headersOf(USER_AGENT), signals: { ...SIGNALS, graphics } };
}

/** A headless Chrome that a script drives, on the same kind of laptop. @param device as in personBrowser */
export function drivenBrowser(device: string): DemoVisit {
  const person = personBrowser(device);
  return {
    headers: headersOf(HEADLESS),
    signals: {
      ...person.signals,
      page: changeGroup(person, 'page', { userAgent: HEADLESS, webdriver: true, pluginCount: 0 }),
      worker: changeGroup(person, 'worker', { userAgent: HEADLESS }),
      frame: changeGroup(person, 'frame', { userAgent: HEADLESS, webdriver: true }),
      input: { moves: 0, downUpMs: null },
    },
  };
}

const NONCE_BYTES = 16;

/** The bundle claims consent, which a bot can do as easily as a person's browser. */
export function sealVisit(
  { kid, publicKey }: { readonly kid: string; readonly publicKey: string },
  { signals }: DemoVisit,
  now: number,
  random: Random,
): SealedBundle {
  const consent = { purposes: ['device-identification'], gpc: false, version: 1, issuedAt: now };
  const nonce = random(NONCE_BYTES).toString('base64url');
  const plaintext = JSON.stringify({ v: 1, nonce, clientTs: now, consent, signals });
  return sealTo(kid, Buffer.from(publicKey, 'base64'), Buffer.from(plaintext), random);
}

export interface PastVisit {
  readonly at: number;
  readonly visit: DemoVisit;
}

const DAYS = 14;
const PEOPLE = 23;
const BOTS = 4;
/** Number of visits, by day of the week. */
const VISITS_PER_DAY = [7, 9, 8, 10, 12, 15, 11];
const OPENING_HOUR = 7;

const OPENED_DAYS = 40;

/** @returns when the shop opened: midnight before the first objection and the first visit */
export const openedAt = (now: number): number => Math.floor(now / DAY - OPENED_DAYS) * DAY;

/** @returns two weeks of visits before `now`, the same in every demo; about a fifth of them are bots */
export function pastVisits(now: number): readonly PastVisit[] {
  const first = Math.floor(now / DAY - DAYS) * DAY;
  return Array.from({ length: DAYS }, (_, day) => {
    const count = VISITS_PER_DAY[day % VISITS_PER_DAY.length] ?? 0;
    return Array.from({ length: count }, (_, i) => {
      const index = day * 17 + i * 5;
      const hours = OPENING_HOUR + (i * 15) / count;
      const visit =
        (day + i) % 5 === 0
          ? drivenBrowser(`bot-${index % BOTS}`)
          : personBrowser(`person-${index % PEOPLE}`);
      return { at: first + day * DAY + Math.floor((hours / 24) * DAY), visit };
    });
  }).flat();
}
