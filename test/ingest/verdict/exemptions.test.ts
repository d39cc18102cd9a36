import { describe, expect, it } from 'vitest';
import {
  all,
  androidChrome,
  androidDesktopMode,
  type Browser,
  brave,
  type Change,
  changed,
  chrome,
  chromebook,
  chromeOf,
  drawnBy,
  EMPTIED,
  firefox,
  firefoxRfp,
  globals,
  groups,
  handshake,
  header,
  iPad,
  iPhone,
  JA4,
  LLVMPIPE,
  linuxChrome,
  NO_POINTER,
  named,
  nothing,
  patched,
  put,
  request,
  safari,
  sized,
  uaData,
  webView,
} from './support/browsers.ts';

/** Each rule stays silent for devices and places of which the oddity is nothing odd, and for honest contradictions. */

type Row = readonly [rule: string, name: string, make: () => Browser, change: Change];

const IOS_CHROME = (): Browser => iPhone('CriOS/141.0.0.0 Mobile/15E148 Safari/604.1');
const SLACK =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Slack/4.4 Chrome/141.0.0.0 Electron/38.0 Safari/537.36';
const OLD_GREASE = '" Not A;Brand";v="99", "Chromium";v="109", "Google Chrome";v="109"';
const NO_BRANDS = { uaData: { brands: [], platform: 'Windows' } };

const AUTOMATION: readonly Row[] = [
  ['A1', 'webdriver false', chrome, put.page({ webdriver: false })],
  ['A2', 'Electron is a real app', chrome, put.page({ userAgent: SLACK })],
  ['A2', 'a head in another word', chrome, header('user-agent', 'Mozilla/5.0 HeadlightChrome/1')],
  ...['phantom', 'emit', 'spawn', 'ethereum', 'selenium', 'cdc', 'my__pw', 'onnightmare', 'domAuto'].map(
    (name): Row => ['A3', `${name}: wallets and pages define it`, chrome, globals(name)],
  ),
  ['A4', "today's form", chrome, header('sec-ch-ua', '"Not;A Brand";v="99", "Chromium";v="141"')],
  ['A4', 'a Chrome as old as its brand', chrome, all(chromeOf(109), header('sec-ch-ua', OLD_GREASE))],
  ['A4', 'not Chromium', firefox, header('sec-ch-ua', OLD_GREASE)],
  ['A4', 'Chrome on iOS is not Chromium', iPhone, header('sec-ch-ua', OLD_GREASE)],
  ['A5', 'no worker', chrome, groups({ worker: null })],
  ['A5', 'no client hints in the worker', chrome, put.worker({ uaData: null })],
  ['A5', 'no brands in the page either', chrome, all(uaData({ brands: [] }), put.worker(NO_BRANDS))],
  ['A5', 'no client hints at all', safari, nothing],
  ['A6', 'a frame that is there when it should be', chrome, put.frame({ srcdocPreattached: false })],
  ['A8', 'a press with force', chrome, put.input({ forceless: false })],
  ['A8', 'Firefox', firefox, put.input({ forceless: true })],
  ['A8', 'Safari', safari, put.input({ forceless: true })],
  ['A9', 'permissions that a person gave', chrome, put.tells({ granted: 5, barred: 0 })],
  ['A9', 'a strict policy of an employer', chrome, put.tells({ granted: 1, barred: 4 })],
  ['A9', 'three of four', chrome, put.tells({ granted: 2, barred: 3 })],
  ['A9', 'Firefox', firefox, put.tells({ granted: 2, barred: 4 })],
];

const QUIET_TV =
  'Mozilla/5.0 (SMART-TV; LINUX; Tizen 7.0) AppleWebKit/537.36 (KHTML, like Gecko) 94.0.4606.31/7.0 TV Safari/537.36';
const CAR =
  'Mozilla/5.0 (X11; GNU/Linux) AppleWebKit/537.36 (KHTML, like Gecko) Chromium/141.0.0.0 Chrome/141.0.0.0 Safari/537.36 Tesla/2026.8';
const HEADSET =
  'Mozilla/5.0 (X11; Linux x86_64; Quest 3) AppleWebKit/537.36 (KHTML, like Gecko) OculusBrowser/41.0 Chrome/141.0.0.0 VR Safari/537.36';
const CHROMIUM_WORDS = { evalLength: 33, errorMessage: 'Cannot read properties of null' };
const WORKER_UNTOLD = { userAgent: null, platform: null, uaData: null };
const GECKO_WORDS = { evalLength: 37, errorMessage: 'null has no properties' };
const READ_OUTS = ['canvas', 'audio', 'webgl', 'screen', 'hardwareConcurrency'];
const RFP_HEADER = 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0';
const WEBVIEW_BRANDS = [
  { brand: 'Android WebView', version: '141' },
  { brand: 'Chromium', version: '141' },
];
const UNASKED = { architecture: '', bitness: '', model: null, platformVersion: null, fullVersionList: null };
const KAIOS = 'Mozilla/5.0 (Mobile; Nokia_8110_4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5';
const ANDROID_TV = 'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/141.0.0.0 Safari/537.36';
const NO_TOUCH = put.page({ maxTouchPoints: 0 });
const ON_GRID = put.input({ offGrid: false });
const turnedScreen = put.screen({ width: 600, height: 900, orientation: 'landscape-primary' });
const MOBILE_WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/141.0.0.0 Mobile Safari/537.36';

const TAMPER: readonly Row[] = [
  ['T1', 'an iPad in desktop mode', iPad, nothing],
  ['T1', 'no worker', chrome, groups({ worker: null })],
  ['T1', 'a worker that does not say', chrome, put.worker(WORKER_UNTOLD)],
  ['T1', 'a worker on a platform that nobody knows', chrome, put.worker({ platform: 'FreeBSD amd64' })],
  ['T1', '"desktop site" on Android', androidDesktopMode, nothing],
  ['T1', 'a worker of no known system', chrome, put.worker({ userAgent: 'Mozilla/5.0' })],
  ['T2', 'Android is Linux to its platform', androidChrome, nothing],
  ['T2', 'ChromeOS is Linux to its platform', chromebook, nothing],
  ['T2', '"desktop site" on Android', androidDesktopMode, nothing],
  ['T2', 'an iPad on MacIntel', iPhone, put.page({ platform: 'MacIntel' })],
  ['T2', 'a Macintosh on iPad', iPad, put.page({ platform: 'iPad' })],
  ['T2', 'resistFingerprinting', firefoxRfp, put.page({ platform: 'Linux x86_64' })],
  ['T2', 'no platform', chrome, put.page({ platform: null })],
  ['T2', 'an unknown platform', chrome, put.page({ platform: 'FreeBSD amd64' })],
  ['T3', 'no header', chrome, header('sec-ch-ua-platform', undefined)],
  ['T3', 'an empty header', chrome, header('sec-ch-ua-platform', '""')],
  ['T3', 'no uaData', chrome, put.page({ uaData: null })],
  ['T3', 'another case', chrome, header('sec-ch-ua-platform', '"WINDOWS"')],
  ['T4', '"Chrome OS" on CrOS', chromebook, nothing],
  ['T4', '"desktop site" on Android', androidDesktopMode, nothing],
  ['T4', 'a platform that nobody knows', chrome, uaData({ platform: 'Fuchsia' })],
  ['T5', 'no long list', chrome, uaData({ fullVersionList: null })],
  ['T5', 'an empty long list', chrome, uaData({ fullVersionList: [] })],
  [
    'T5',
    'another order',
    chrome,
    ({ signals }) => (signals.page['uaData'] as { fullVersionList: unknown[] }).fullVersionList.reverse(),
  ],
  ['T6', 'no renderer in the worker', chrome, put.worker({ renderer: null })],
  ['T6', 'no renderer in the page', chrome, put.graphics({ renderer: null })],
  ['T6', 'Brave', brave, put.worker({ renderer: 'ANGLE (X)' })],
  ['T6', 'resistFingerprinting', firefoxRfp, put.worker({ renderer: 'ANGLE (X)' })],
  ['T7', 'a WebView', webView, put.engine(GECKO_WORDS)],
  ['T7', 'an unknown family', chrome, all(named('Lynx/2.9', 'Linux x86_64'), put.engine({ evalLength: 37 }))],
  ['T7', 'every browser of iOS is WebKit', IOS_CHROME, nothing],
  ['T7', 'an engine that does not say', chrome, put.engine({ evalLength: null, errorMessage: null })],
  [
    'T7',
    'a television that calls itself Safari on Chromium',
    chrome,
    all(named(QUIET_TV, 'Linux armv7l'), put.engine(CHROMIUM_WORDS)),
  ],
  ['T7', 'the browser of a car', chrome, all(named(CAR, 'Linux x86_64'), put.engine(GECKO_WORDS))],
  ['T7', 'words that no engine uses', chrome, put.engine({ errorMessage: 'x is not a function' })],
  ['T8', 'read-outs: a privacy extension', chrome, patched(...READ_OUTS)],
  ['T8', 'nothing', chrome, patched()],
  ['T9', 'no header', chrome, header('user-agent', undefined)],
  ['T9', 'no page', chrome, put.page({ userAgent: null })],
  ['T9', 'resistFingerprinting', firefoxRfp, header('user-agent', RFP_HEADER)],
  ['T10', 'Brave reduces', brave, uaData({ architecture: '', bitness: '', model: '', platformVersion: '' })],
  ['T10', 'desktop Linux has an empty version', linuxChrome, nothing],
  ['T10', 'hints of which half are missing', chrome, uaData(UNASKED)],
  ['T10', 'one that says something', chrome, uaData({ ...EMPTIED, platformVersion: '15.0.0' })],
  ['T10', 'a WebView called Chrome', androidChrome, uaData({ ...EMPTIED, brands: WEBVIEW_BRANDS })],
  ['T10', 'no brands', chrome, uaData({ ...EMPTIED, brands: [] })],
  ['T11', '"Mozilla"', firefoxRfp, nothing],
  ['T11', '"or similar"', () => firefox('X11; Linux x86_64', 'Linux x86_64'), nothing],
  ['T11', 'no renderer', linuxChrome, drawnBy(null)],
  ['T11', 'Adreno over Direct3D11', chrome, drawnBy('ANGLE (Qualcomm, Adreno(TM) 690 GPU Direct3D11)')],
  ['T11', 'Metal on a Mac', safari, drawnBy('ANGLE (Apple, ANGLE Metal Renderer: Apple M1)')],
  ['T11', 'Metal on an iPhone', iPhone, drawnBy('Apple Metal')],
  ['T11', 'Adreno on Android', androidChrome, nothing],
  ['T12', 'five touch points of a desktop: RFP', firefoxRfp, nothing],
  ['T12', 'a desktop without a touch screen', chrome, nothing],
  ['T12', 'a phone with keys: KaiOS', chrome, all(named(KAIOS, ''), NO_TOUCH)],
  ['T12', 'Android on a television', androidChrome, all(named(ANDROID_TV, 'Linux armv81'), NO_TOUCH)],
  ['T12', 'a phone that does not say', androidChrome, put.page({ maxTouchPoints: null })],
  ['T14', 'its own clock on Windows', chrome, put.input({ offGrid: true })],
  ['T14', 'a clock as coarse', chrome, all(ON_GRID, put.time({ clockStepMs: 15.6 }))],
  ['T14', 'a clock that is not known', chrome, all(ON_GRID, put.time({ clockStepMs: null }))],
  ['T14', 'Windows that tells no times', chrome, all(ON_GRID, groups({ time: null }))],
  ['T14', 'Firefox on Windows', firefox, ON_GRID],
  ['T14', 'Linux', linuxChrome, ON_GRID],
  ['T15', 'a tall screen', chrome, all(turnedScreen, put.screen({ orientation: 'portrait-primary' }))],
  ['T15', 'a screen turned upside down', chrome, put.screen({ orientation: 'landscape-secondary' })],
  ['T15', 'a square', chrome, all(sized(900, 900), put.screen({ orientation: 'portrait-primary' }))],
  ['T15', 'a screen that does not say', chrome, all(turnedScreen, put.screen({ orientation: null }))],
  ['T15', 'a screen without a width', chrome, all(turnedScreen, put.screen({ width: null }))],
  ['T15', 'no height', chrome, put.screen({ height: null, orientation: 'portrait-primary' })],
  ['T15', 'a phone that names a desktop', chrome, all(turnedScreen, named(MOBILE_WINDOWS, 'Win32'))],
  ['T15', 'a phone', androidChrome, all(turnedScreen, put.screen({ turns: true }))],
  ['T15', '"desktop site" on a phone', androidDesktopMode, put.screen({ turns: true })],
  ['T15', 'an iPad with the name of a Mac', iPad, put.screen({ turns: true })],
  ['T15', 'resistFingerprinting, which always says landscape', firefoxRfp, turnedScreen],
  ['N1', 'the handshake of its family', chrome, handshake(JA4.blink)],
  ['N1', "Gecko's of Firefox", firefox, handshake(JA4.gecko)],
  ['N1', "WebKit's of Chrome on an iPhone", IOS_CHROME, handshake(JA4.webkit)],
  ['N1', "Chromium 156's of Chrome", chrome, handshake('t13d1517h2_8daaf6152771_0')],
  ['N1', "QtWebEngine's, with an extension less", chrome, handshake('t13d1515h2_8daaf6152771_0')],
  ['N1', "Firefox 153's of Firefox", firefox, handshake('t13d1616h2_86a278354501_0')],
  ['N1', "WebKitGTK's of Safari", safari, handshake('t13d2913h2_723694b0fccc_0')],
  ['N1', "a middlebox with OpenSSL's, without h2", chrome, handshake('t13d3112h1_e8f1e7e78f70_b26c')],
  ['N1', 'garbage', chrome, handshake('x')],
  ['N1', 'a name that is no browser’s', chrome, all(handshake(JA4.gecko), named('Something/1.0', 'Win32'))],
  ['N1', 'no handshake', chrome, nothing],
];

const TV = 'Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 Chrome/120.0.0.0 Safari/537.36';
const CONSOLE =
  'Mozilla/5.0 (PlayStation; PlayStation 5/6.50) AppleWebKit/605.1.15 Version/15.4 Safari/605.1.15';
const XBOX =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64; Xbox) AppleWebKit/537.36 Chrome/141.0.0.0 Safari/537.36';
const BARE = all(header('sec-ch-ua', undefined), header('sec-fetch-site', undefined));

const MEDIUM: readonly Row[] = [
  ['M1', 'larger by exactly 32 px', chrome, put.screen({ outerWidth: 1952, outerHeight: 1112 })],
  ['M1', 'a screen that does not say', chrome, put.screen({ width: null, outerWidth: 9999 })],
  ['M2', 'no answer', chrome, put.tells({ cdp: null })],
  ['M4', 'a WebView', webView, put.tells({ notificationMismatch: true })],
  ['M4', 'no answer', chrome, put.tells({ notificationMismatch: null })],
  ['M5', 'a television', chrome, all(named(TV, 'Linux armv7l'), NO_POINTER)],
  ['M5', 'a games console', chrome, all(named(CONSOLE, 'PlayStation 5'), NO_POINTER)],
  ['M5', 'an Xbox', chrome, all(named(XBOX, 'Win32'), NO_POINTER)],
  ['M5', 'a phone', androidChrome, NO_POINTER],
  ['M5', 'an Android tablet', chrome, all(named(ANDROID_TV, 'Linux armv81'), NO_POINTER)],
  ['M5', '"desktop site" on a phone', androidDesktopMode, nothing],
  ['M5', 'Brave', brave, nothing],
  ['M5', 'a pointer that does not hover', chrome, put.media({ pointer: 'coarse', hover: false })],
  ['M5', 'no answer about hovering', chrome, put.media({ pointer: 'none', hover: null })],
  ['M6', 'a phone', androidChrome, nothing],
  ['M6', 'a television', chrome, all(named(TV, 'Linux armv7l'), put.page({ chromeObject: false }))],
  ['M6', 'a headset', chrome, all(named(HEADSET, 'Linux x86_64'), put.page({ chromeObject: false }))],
  ['M6', 'Android on a desk', androidChrome, all(named(ANDROID_TV, 'Linux armv81'), NO_TOUCH)],
  ['M6', '"desktop site" on a phone', androidDesktopMode, nothing],
  ['M6', 'a WebView', webView, nothing],
  ['M6', 'Firefox', firefox, nothing],
  ['M6', 'Chrome on an iPhone', IOS_CHROME, nothing],
  ['M6', 'no answer', chrome, put.page({ chromeObject: null })],
  ['M7', 'llvmpipe is only weak', linuxChrome, LLVMPIPE],
  ['M7', 'no renderer', chrome, drawnBy(null)],
  [
    'M8',
    'no browser',
    chrome,
    all(header('user-agent', 'curl/8.14.1'), header('accept-language', undefined)),
  ],
  ['M12', 'no answer', chrome, put.tells({ activated: null })],
  ['M12', 'WebKitGTK, where it is so for people', safari, put.tells({ activated: true })],
  ['N2', 'http: Chromium keeps both to itself', chrome, all(BARE, request({ https: false }))],
  ['N2', 'a WebView', webView, nothing],
  ['N2', 'Firefox sends no client hints', firefox, nothing],
  ['N2', 'Safari sends none', safari, nothing],
  ['N2', 'Chrome on an iPhone', IOS_CHROME, nothing],
  ['N2', 'a Chrome before 89', chrome, all(chromeOf(88), header('sec-ch-ua', undefined))],
  ['N3', 'another region', chrome, header('accept-language', 'en-US,en;q=0.9')],
  ['N3', 'another case', chrome, header('accept-language', 'EN')],
  ['N3', 'any language', chrome, header('accept-language', '*')],
  ['N3', 'spoofed English of resistFingerprinting', firefoxRfp, put.page({ language: 'de-DE' })],
  ['N3', 'no language in the page', chrome, put.page({ language: null })],
  ['W1', '600 × 800', chrome, put.screen({ width: 600, height: 800 })],
  ['W1', '800 × 900', chrome, put.screen({ width: 800, height: 900 })],
  ...['innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'].map(
    (side): Row => ['W2', `all but ${side}`, chrome, all(sized(900, 700), put.screen({ [side]: 600 }))],
  ),
  ['W3', 'a page as large as its window', chrome, sized(900, 700)],
  ['W3', 'a window without a size', chrome, put.screen({ outerWidth: 0, outerHeight: 0 })],
  ['W4', 'a phone', androidChrome, nothing],
  ['W4', 'a name of no browser', chrome, all(named('Something/1.0', ''), put.page({ pluginCount: 0 }))],
  ['W5', 'a graphics card', chrome, nothing],
  ['W6', 'London', chrome, put.time({ zone: 'Europe/London' })],
  ['W8', 'a maker without a name', chrome, put.graphics({ vendor: 'Intel', renderer: null })],
  ['W8', 'no graphics at all is another matter: incomplete', chrome, groups({ graphics: null })],
];

describe('stays silent', () => {
  it.each([...AUTOMATION, ...TAMPER, ...MEDIUM])('%s: %s', (id, _name, make, change) => {
    expect(changed(make, change).ids).not.toContain(id);
  });

  it.each(AUTOMATION)('%s, and no program drives it: %s', (_id, _name, make, change) => {
    expect(changed(make, change).automation).toBe(false);
  });
});

/** Chromium stamps the events of Wayland itself. */
describe('the clock of the mouse on Linux says nothing', () => {
  const offGrid = put.input({ offGrid: true });
  it.each<readonly [string, () => Browser, Change, string]>([
    ["the display's times", linuxChrome, ON_GRID, 'human'],
    ['times of its own', linuxChrome, offGrid, 'human'],
    ['times beside developer tools', linuxChrome, all(offGrid, put.tells({ cdp: true })), 'unknown'],
    ['Firefox', () => firefox('X11; Linux x86_64', 'Linux x86_64'), offGrid, 'human'],
    ['no hints', linuxChrome, all(offGrid, put.page({ uaData: null })), 'human'],
  ])('%s', (_name, make, change, expected) => {
    expect(changed(make, change).class).toBe(expected);
  });
});

describe('another engine under the name of Chrome', () => {
  const WEBKIT_WORDS = { evalLength: 37, errorMessage: "null is not an object (evaluating 'null.a')" };
  const HINTS = { uaData: chrome().signals.page['uaData'] };
  const strong = (change: Change): readonly string[] =>
    changed(chrome, put.page({ chromeObject: false, uaData: null }), BARE, change).strong;

  it.each([GECKO_WORDS, WEBKIT_WORDS])('with every mark of it: neither M6 nor N2: %o', (words) => {
    expect(strong(put.engine(words))).toEqual(['T7']);
  });

  it.each([
    ['its words alone', put.engine({ ...GECKO_WORDS, evalLength: 33 })],
    ["its eval with V8's words", put.engine({ evalLength: 37 })],
    ['its eval without words', put.engine({ evalLength: 37, errorMessage: null })],
    ['no engine at all', groups({ engine: null })],
    ['its words and its eval, with client hints', all(put.page(HINTS), put.engine(GECKO_WORDS))],
  ])('%s: M6 and N2', (_name, change) => {
    expect(strong(change)).toEqual(expect.arrayContaining(['M6', 'N2']));
  });
});
