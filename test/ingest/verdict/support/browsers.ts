import { type Classification, classify, RULES } from '../../../../src/ingest/verdict/classify.ts';
import { type Facts, readFacts } from '../../../../src/ingest/verdict/facts.ts';
import { readSignals } from '../../../../src/schema/signals.ts';
import { browserHeaders, desktopChrome, type SampleSignals } from '../../../support/samples.ts';

/** Browsers as people use them: each complete, consistent with its own headers, and `human`. */

export interface Browser {
  readonly signals: SampleSignals;
  readonly headers: Record<string, string | undefined>;
  https: boolean;
  ja4: string | null;
  /** The client's network, where a database tells it. */
  hosting?: boolean;
}

export interface Judged extends Classification {
  readonly facts: Facts;
  /** Ids of the rules that fired, weak ones left out. */
  readonly strong: readonly string[];
  readonly ids: readonly string[];
}

export function judge({ signals, headers, https, ja4, hosting }: Browser): Judged {
  const facts = readFacts(readSignals(signals), { headers, https, ja4, hosting: hosting ?? null });
  const verdict = classify(facts, RULES);
  const ids = verdict.rules.map(({ id }) => id);
  const strong = verdict.rules.filter(({ kind }) => kind !== 'W').map(({ id }) => id);
  return { ...verdict, facts, strong, ids };
}

export function chrome(): Browser {
  return { signals: desktopChrome('d'.repeat(32)), headers: { ...browserHeaders() }, https: true, ja4: null };
}

interface Identity {
  readonly userAgent: string;
  readonly platform: string;
  readonly vendor?: string;
}

/** Each part of a browser that names it gets the same name. */
function rename(browser: Browser, { userAgent, platform, vendor }: Identity): void {
  const { page, worker, frame } = browser.signals;
  for (const group of [page, worker, frame]) Object.assign(group, { userAgent, platform });
  Object.assign(page, {
    appVersion: userAgent.replace('Mozilla/', ''),
    ...(vendor === undefined ? {} : { vendor }),
  });
  browser.headers['user-agent'] = userAgent;
}

function withoutHints(browser: Browser): void {
  Object.assign(browser.signals.page, { uaData: null, chromeObject: false });
  Object.assign(browser.signals.worker, { uaData: null });
  for (const name of ['sec-ch-ua', 'sec-ch-ua-mobile', 'sec-ch-ua-platform']) delete browser.headers[name];
}

function hints(browser: Browser, platform: string, values: Record<string, unknown> = {}): void {
  const { page, worker } = browser.signals;
  Object.assign(page['uaData'] as object, { platform, ...values });
  Object.assign(worker['uaData'] as object, { platform });
  browser.headers['sec-ch-ua-platform'] = `"${platform}"`;
}

const CHROMIUM = (system: string, mobile = ''): string =>
  `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0${mobile} Safari/537.36`;

function gpu(browser: Browser, renderer: string | null): void {
  browser.signals.graphics['renderer'] = renderer;
  browser.signals.worker['renderer'] = renderer;
}

export function linuxChrome(): Browser {
  const browser = chrome();
  rename(browser, { userAgent: CHROMIUM('X11; Linux x86_64'), platform: 'Linux x86_64' });
  hints(browser, 'Linux', { platformVersion: '' });
  gpu(browser, 'ANGLE (Intel, Mesa Intel(R) UHD Graphics 620 (KBL GT2), OpenGL 4.6)');
  return browser;
}

export function chromebook(): Browser {
  const browser = linuxChrome();
  rename(browser, { userAgent: CHROMIUM('X11; CrOS x86_64 14541.0.0'), platform: 'Linux x86_64' });
  hints(browser, 'Chrome OS');
  return browser;
}

function phone(browser: Browser): void {
  Object.assign(browser.signals.page, { maxTouchPoints: 5, pluginCount: 0, chromeObject: false });
  Object.assign(browser.signals.media, { pointer: 'coarse', hover: false });
}

export function androidChrome(): Browser {
  const browser = chrome();
  rename(browser, { userAgent: CHROMIUM('Linux; Android 10; K', ' Mobile'), platform: 'Linux armv81' });
  hints(browser, 'Android', { mobile: true, architecture: '', bitness: '', model: 'Pixel 8' });
  gpu(browser, 'ANGLE (Qualcomm, Adreno (TM) 740, OpenGL ES 3.2)');
  phone(browser);
  return browser;
}

/** "Desktop site" on a phone: it calls itself Linux and keeps its touch screen. */
export function androidDesktopMode(): Browser {
  const browser = androidChrome();
  rename(browser, { userAgent: CHROMIUM('X11; Linux x86_64'), platform: 'Linux armv81' });
  hints(browser, 'Linux', { mobile: false, model: '' });
  return browser;
}

export function webView(): Browser {
  const browser = androidChrome();
  const userAgent =
    'Mozilla/5.0 (Linux; Android 14; Pixel 8; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/141.0.0.0 Mobile Safari/537.36';
  rename(browser, { userAgent, platform: 'Linux armv81' });
  for (const name of ['sec-ch-ua', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest'])
    delete browser.headers[name];
  return browser;
}

const GECKO = { evalLength: 37, errorMessage: 'can\'t access property "a", null is null', math: 'b' };
const WEBKIT = { evalLength: 37, errorMessage: "null is not an object (evaluating 'null.a')", math: 'c' };

export function firefox(system = 'Windows NT 10.0; Win64; x64', platform = 'Win32'): Browser {
  const browser = chrome();
  rename(browser, {
    userAgent: `Mozilla/5.0 (${system}; rv:145.0) Gecko/20100101 Firefox/145.0`,
    platform,
    vendor: '',
  });
  withoutHints(browser);
  browser.signals.engine = { ...GECKO };
  gpu(browser, 'ANGLE (Intel, Intel(R) HD Graphics Direct3D11 vs_5_0 ps_5_0), or similar');
  return browser;
}

/** Firefox with resistFingerprinting, and Tor Browser. */
export function firefoxRfp(): Browser {
  const browser = firefox();
  const { page, screen, time, graphics } = browser.signals;
  Object.assign(page, {
    maxTouchPoints: 5,
    hardwareConcurrency: 8,
    language: 'en-US',
    languages: ['en-US', 'en'],
  });
  const size = { width: 1400, height: 900 };
  Object.assign(screen, { ...size, innerWidth: 1400, innerHeight: 900, outerWidth: 1400, outerHeight: 900 });
  Object.assign(time, { zone: 'Atlantic/Reykjavik', offsetMinutes: 0, clockStepMs: 16.67 });
  Object.assign(graphics, { canvasStable: false, canvasFlatBadPixels: 16_384 });
  gpu(browser, 'Mozilla');
  browser.headers['accept-language'] = 'en-US,en;q=0.5';
  return browser;
}

function webKit(browser: Browser): void {
  withoutHints(browser);
  browser.signals.engine = { ...WEBKIT };
  gpu(browser, 'Apple GPU');
}

export function safari(): Browser {
  const browser = chrome();
  const userAgent =
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15';
  rename(browser, { userAgent, platform: 'MacIntel', vendor: 'Apple Computer, Inc.' });
  webKit(browser);
  return browser;
}

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)';

export function iPhone(product = 'Version/18.1 Mobile/15E148 Safari/604.1'): Browser {
  const browser = safari();
  rename(browser, { userAgent: `${IPHONE} ${product}`, platform: 'iPhone' });
  phone(browser);
  return browser;
}

/** An iPad calls itself a Macintosh; its worker and its platform may still say iPad. */
export function iPad(): Browser {
  const browser = safari();
  Object.assign(browser.signals.worker, { userAgent: IPHONE.replaceAll('iPhone', 'iPad'), platform: 'iPad' });
  phone(browser);
  return browser;
}

export function brave(): Browser {
  const browser = chrome();
  const brands = [
    { brand: 'Brave', version: '141' },
    { brand: 'Not?A_Brand', version: '8' },
    { brand: 'Chromium', version: '141' },
  ];
  const { page, worker, graphics } = browser.signals;
  Object.assign(page['uaData'] as object, { brands, fullVersionList: brands });
  Object.assign(worker['uaData'] as object, { brands });
  Object.assign(page, { brave: true });
  Object.assign(graphics, { canvasFlatBadPixels: 12, audioStable: false });
  browser.headers['sec-ch-ua'] = brands.map(({ brand, version }) => `"${brand}";v="${version}"`).join(', ');
  return browser;
}

export function changed(make: () => Browser, ...changes: readonly Change[]): Judged {
  const browser = make();
  for (const change of changes) change(browser);
  return judge(browser);
}

/** A change of one thing in a browser. */
export type Change = (browser: Browser) => void;

type Group = Exclude<keyof Browser['signals'], number | symbol>;

/** Sets fields of one group of signals. */
const inGroup =
  (group: Group) =>
  (values: Readonly<Record<string, unknown>>): Change =>
  ({ signals }) => {
    Object.assign(signals[group] as object, values);
  };
export const put = {
  page: inGroup('page'),
  worker: inGroup('worker'),
  frame: inGroup('frame'),
  screen: inGroup('screen'),
  media: inGroup('media'),
  graphics: inGroup('graphics'),
  engine: inGroup('engine'),
  time: inGroup('time'),
  tells: inGroup('tells'),
  input: inGroup('input'),
} as const;

export const globals = (...names: readonly string[]): Change => put.tells({ globals: names });
export const patched = (...names: readonly string[]): Change => put.tells({ patched: names });

/** One size for all: the screen, the window and its page. */
export const sized = (width: number, height: number): Change =>
  put.screen({
    width,
    height,
    innerWidth: width,
    innerHeight: height,
    outerWidth: width,
    outerHeight: height,
  });

/** Groups as a whole; null is missing. */
export const groups =
  (values: Readonly<Record<string, unknown>>): Change =>
  ({ signals }) => {
    Object.assign(signals, values);
  };

export const uaData =
  (values: Readonly<Record<string, unknown>>): Change =>
  ({ signals }) => {
    Object.assign(signals.page['uaData'] as object, values);
  };

export const header =
  (name: string, value: string | undefined): Change =>
  ({ headers }) => {
    Object.assign(headers, { [name]: value });
  };

/** The request, as its connection is seen. */
export const request =
  (values: Partial<Pick<Browser, 'https' | 'ja4' | 'hosting'>>): Change =>
  (browser) => {
    Object.assign(browser, values);
  };
export const handshake = (ja4: string): Change => request({ ja4 });

export const drawnBy =
  (renderer: string | null): Change =>
  (browser) =>
    gpu(browser, renderer);

export const named =
  (userAgent: string, platform: string): Change =>
  (browser) =>
    rename(browser, { userAgent, platform });

export const chromeOf = (major: number): Change =>
  named(CHROMIUM('Windows NT 10.0; Win64; x64').replace('141', String(major)), 'Win32');

export const all =
  (...changes: readonly Change[]): Change =>
  (browser) => {
    for (const change of changes) change(browser);
  };

export const nothing: Change = () => {};

/** A disguised Chromium has emptied hints, by a switch or by a driver. */
export const EMPTIED = { architecture: '', bitness: '', model: '', platformVersion: '', fullVersionList: [] };
export const NO_POINTER = put.media({ pointer: 'none', hover: false });
export const NO_WEBGL = put.graphics({ vendor: null, renderer: null });
export const SWIFTSHADER = drawnBy(
  'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)',
);
export const LLVMPIPE = drawnBy('llvmpipe (LLVM 19.1.7, 256 bits)');
/** A page that fills the screen in a window that does not fit on it. */
export const OUTGROWN = put.screen({
  innerWidth: 1920,
  innerHeight: 1080,
  outerWidth: 1928,
  outerHeight: 1168,
});
/** The device toolbar of developer tools: the screen is the page, and the window is as large as before. */
export const DEVICE_TOOLBAR = put.screen({
  width: 1177,
  height: 837,
  innerWidth: 1177,
  innerHeight: 837,
  outerWidth: 1780,
  outerHeight: 1000,
});
/** A remote desktop that its viewer made smaller than the window of the browser. */
export const SHRUNK_DESKTOP = put.screen({ width: 1280, height: 720, outerWidth: 1800, outerHeight: 900 });
/** Developer tools, as a person opens them. */
export const DEVTOOLS = all(put.tells({ cdp: true, debugsPageAlone: false }), put.worker({ cdp: true }));

/** Parts of handshakes as the families begin them. */
export const JA4 = {
  blink: 't13d1516h2_8daaf6152771_02713d6af862',
  gecko: 't13d1715h2_5b57614c22b0_3d5424432f57',
  webkit: 't13d2014h2_a09f3c656075_14788d8d241b',
} as const;
