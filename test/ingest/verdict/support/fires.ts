import {
  all,
  androidChrome,
  type Browser,
  type Change,
  chrome,
  chromeOf,
  drawnBy,
  EMPTIED,
  firefox,
  globals,
  handshake,
  header,
  iPhone,
  JA4,
  LLVMPIPE,
  linuxChrome,
  NO_POINTER,
  NO_WEBGL,
  OUTGROWN,
  patched,
  put,
  request,
  SWIFTSHADER,
  safari,
  sized,
  uaData,
} from './browsers.ts';

/** A case that a rule is shown to fire on: the rule, the case, a browser and what is changed of it. */
export type Shown = readonly [rule: string, name: string, make: () => Browser, change: Change];

const brands = (brand: string, list = 'brands'): Change => uaData({ [list]: [{ brand, version: '99' }] });
const NO_BRANDS = put.worker({ uaData: { brands: [], platform: 'Windows' } });
const workerBrands = (...names: readonly string[]): Change =>
  put.worker({ uaData: { brands: names.map((brand) => ({ brand, version: '141' })), platform: 'Linux' } });
const HEADLESS =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/141.0.0.0 Safari/537.36';

const AUTOMATION: readonly Shown[] = [
  ['A1', 'webdriver in the page', chrome, put.page({ webdriver: true })],
  ['A1', 'webdriver in a frame', chrome, put.frame({ webdriver: true })],
  ['A2', 'HeadlessChrome in the page', chrome, put.page({ userAgent: HEADLESS })],
  ['A2', 'HeadlessChrome in appVersion', chrome, put.page({ appVersion: HEADLESS.slice(8) })],
  ['A2', 'HeadlessChrome in the worker alone', chrome, put.worker({ userAgent: HEADLESS })],
  ['A2', 'HeadlessChrome in a frame alone', chrome, put.frame({ userAgent: HEADLESS })],
  ['A2', 'HeadlessChrome in the request alone', chrome, header('user-agent', HEADLESS)],
  ['A2', 'HeadlessChrome in Sec-CH-UA alone', chrome, header('sec-ch-ua', '"HeadlessChrome";v="141"')],
  ['A2', 'HeadlessChrome among the brands', chrome, brands('HeadlessChrome')],
  ['A2', 'HeadlessChrome among the full versions', chrome, brands('HeadlessChrome', 'fullVersionList')],
  ['A2', "HeadlessChrome among the worker's brands", chrome, workerBrands('HeadlessChrome')],
  ...['PhantomJS/2.1.1', 'SlimerJS/1.0', 'HappyDOM/15.0', 'jsdom/25.0'].map(
    (product) => ['A2', product, chrome, header('user-agent', `Mozilla/5.0 (Unknown) ${product}`)] as const,
  ),
  ...['cdc_adoQpoasnfa76pfcZLmcfl_Array', '$cdc_a', '__pwInitScripts', '__playwright__binding__'].map(
    (name) => ['A3', name, chrome, globals('a', name)] as const,
  ),
  ...['__selenium_unwrapped', '__webdriver_evaluate', 'domAutomation', 'callPhantom', '__nightmare'].map(
    (name) => ['A3', name, chrome, globals('a', name)] as const,
  ),
  ['A4', 'in the header', chrome, header('sec-ch-ua', '"Not A;Brand";v="99"')],
  ['A4', 'in the header, with a space', chrome, header('sec-ch-ua', '" Not A;Brand";v="99"')],
  ['A4', 'in the page alone', chrome, brands(' Not A;Brand')],
  ['A4', 'among the full versions', chrome, brands(' Not A;Brand', 'fullVersionList')],
  ['A5', 'an empty list in the worker', chrome, NO_BRANDS],
  ['A5', 'no list in the worker', chrome, put.worker({ uaData: { platform: 'Windows' } })],
  ['A7', 'the same in a window of exactly the screen', chrome, all(NO_BRANDS, sized(1920, 1080))],
  ['A6', 'a frame that is there too early', chrome, put.frame({ srcdocPreattached: true })],
  ['A8', 'a press without force', chrome, put.input({ forceless: true })],
  ['A9', 'granted and barred by a driver', chrome, put.tells({ granted: 2, barred: 4 })],
  ['T14', 'whole milliseconds under the name of Windows', chrome, put.input({ offGrid: false })],
  ['T15', 'a tall screen that is said to lie', chrome, put.screen({ width: 600 })],
  ['T15', 'a wide screen that is said to stand', chrome, put.screen({ orientation: 'portrait-primary' })],
  ['T15', "a phone's orientation under the name of a desktop", chrome, put.screen({ turns: true })],
  ['M12', 'a page that nobody used and that counts as used', chrome, put.tells({ activated: true })],
];

const TAMPER: readonly Shown[] = [
  ['T1', 'a worker on Linux', chrome, put.worker({ userAgent: 'Mozilla/5.0 (X11; Linux x86_64)' })],
  ['T1', 'a platform of Linux in the worker alone', chrome, put.worker({ platform: 'Linux x86_64' })],
  ['T1', 'hints of Linux in the worker alone', chrome, workerBrands('Chromium')],
  ['T2', 'a Mac on Win32', safari, put.page({ platform: 'Win32' })],
  ['T2', 'an iPhone on Linux', iPhone, put.page({ platform: 'Linux x86_64' })],
  ['T2', 'Android on a Mac', androidChrome, put.page({ platform: 'MacIntel' })],
  ['T3', 'another platform in the request', chrome, header('sec-ch-ua-platform', '"macOS"')],
  ['T3', 'a quote within the platform', chrome, header('sec-ch-ua-platform', '"Win"dows"')],
  ['T4', 'Linux in uaData of Windows', chrome, uaData({ platform: 'Linux' })],
  ['T5', 'another browser', chrome, uaData({ fullVersionList: [{ brand: 'Chromium', version: '141' }] })],
  ['T6', 'another chip in the worker', chrome, put.worker({ renderer: 'ANGLE (NVIDIA)' })],
  ['T7', "V8's eval under the name of Firefox", firefox, put.engine({ evalLength: 33 })],
  ['T7', "Gecko's eval under the name of Chrome", chrome, put.engine({ evalLength: 37 })],
  ['T7', "V8's words in Safari", safari, put.engine({ errorMessage: 'Cannot read property' })],
  ['T7', "Gecko's words in Chrome", chrome, put.engine({ errorMessage: 'null has no properties' })],
  ['T7', "WebKit's words in Firefox", firefox, put.engine({ errorMessage: 'null is not an object' })],
  ['T7', 'client hints in Firefox', firefox, put.page({ uaData: { platform: 'Windows' } })],
  ['T7', "V8's eval under the name of an iPhone", iPhone, put.engine({ evalLength: 33 })],
  ...['webdriver', 'userAgent', 'platform', 'plugins', 'languages', 'vendor', 'Function.toString'].map(
    (name): Shown => ['T8', name, chrome, patched('canvas', name)],
  ),
  ['T9', 'another browser in the request', chrome, header('user-agent', 'Mozilla/5.0 Chrome/140.0.0.0')],
  ['T10', 'emptied hints', chrome, uaData(EMPTIED)],
  ['T10', 'emptied hints, one of them missing', chrome, uaData({ ...EMPTIED, platformVersion: null })],
  ['T10', 'emptied hints without a long list', linuxChrome, uaData({ ...EMPTIED, fullVersionList: null })],
  ['T11', 'Direct3D on Linux', linuxChrome, drawnBy('ANGLE (Intel, Direct3D11 vs_5_0 ps_5_0)')],
  ['T11', 'Metal on Windows', chrome, drawnBy('ANGLE (Apple, ANGLE Metal Renderer: Apple M1)')],
  ['T11', 'Mali on Windows', chrome, drawnBy('Mali-G78')],
  ['T11', 'Adreno over OpenGL ES', chrome, drawnBy('ANGLE (Qualcomm, Adreno (TM) 740, OpenGL ES 3.2)')],
  ['T12', 'an Android phone', androidChrome, put.page({ maxTouchPoints: 0 })],
  ['T12', 'an iPhone', iPhone, put.page({ maxTouchPoints: 0 })],
  ['T13', 'a page as large as a screen that its window does not fit on', chrome, OUTGROWN],
  ['N1', "Firefox's handshake under the name of Chrome", chrome, handshake(JA4.gecko)],
  ['N1', "Firefox 153's handshake under the name of Chrome", chrome, handshake('t13d1617h2_86a278354501_0')],
  ['N1', "WebKitGTK's handshake under the name of Firefox", firefox, handshake('t13d2913h2_723694b0fccc_0')],
  ['N1', "Python's handshake", chrome, handshake('t13d1813h1_85036bcba153_0')],
  ['N1', "Python's handshake with requests", firefox, handshake('t13d1812h1_85036bcba153_0')],
  ['N1', "Go's handshake", chrome, handshake('t13d1912h2_9dc949149365_0')],
  ['N1', "Node's handshake", safari, handshake('t13d5911h1_a33745022dd6_0')],
  ['N1', "Java's handshake", chrome, handshake('t13d3713h2_db35923f8641_0')],
  ['N1', "curl's handshake", chrome, handshake('t13d3112h2_e8f1e7e78f70_0')],
  ['N1', "Safari's handshake under the name of Chrome", chrome, handshake(JA4.webkit)],
  ['N1', "Chrome's handshake under the name of Firefox", firefox, handshake(JA4.blink)],
  ['N1', "Chrome's handshake on an iPhone", () => iPhone('CriOS/141.0.0.0'), handshake(JA4.blink)],
];

const MEDIUM: readonly Shown[] = [
  ['M1', 'wider by more than 32 px', chrome, put.screen({ outerWidth: 1920 + 33 })],
  ['M1', 'higher by more than 32 px', chrome, put.screen({ outerHeight: 1080 + 33 })],
  ['M2', 'in the page', chrome, put.tells({ cdp: true })],
  ['M2', 'in the worker', chrome, put.worker({ cdp: true })],
  ['M4', 'denied and to be asked', chrome, put.tells({ notificationMismatch: true })],
  ['M5', 'a desktop without a pointer', chrome, NO_POINTER],
  ['M6', 'a desktop Chromium without window.chrome', chrome, put.page({ chromeObject: false })],
  ['M7', 'SwiftShader', chrome, SWIFTSHADER],
  ['M8', 'a browser with an empty Accept-Language', chrome, header('accept-language', '')],
  ['N2', 'Chrome with an empty Sec-CH-UA', chrome, header('sec-ch-ua', '')],
  ['N2', 'Chrome without fetch metadata', chrome, header('sec-fetch-site', undefined)],
  ['N2', 'a Chrome of 89', chrome, all(chromeOf(89), header('sec-ch-ua', undefined))],
];

const WEAK: readonly Shown[] = [
  ['W1', '800 × 600', chrome, all(sized(800, 600), put.screen({ innerHeight: 500 }))],
  ['W2', 'one size for all', chrome, sized(900, 700)],
  ['W3', 'a page wider than its window', chrome, put.screen({ innerWidth: 1441 })],
  ['W3', 'a page higher than its window', chrome, put.screen({ innerHeight: 981 })],
  ['W4', 'a desktop without plug-ins', chrome, put.page({ pluginCount: 0 })],
  ['W5', 'llvmpipe', linuxChrome, LLVMPIPE],
  ['W5', 'the basic renderer', chrome, drawnBy('ANGLE (Microsoft, Microsoft Basic Render Driver)')],
  ['W6', 'UTC', chrome, put.time({ zone: 'UTC' })],
  ['W9', 'an Electron application', chrome, put.tells({ processType: 'renderer' })],
  ['W8', 'no WebGL', chrome, NO_WEBGL],
  ['N4', 'a hosting network', chrome, request({ hosting: true })],
  ['N3', 'another language', chrome, header('accept-language', 'de-DE,de;q=0.9,en;q=0.8')],
];

/** These stand beside another one by their nature: no case shows them alone. */
export const PAIRED: readonly Shown[] = [
  ['M9', 'no pointer and software graphics', chrome, all(NO_POINTER, LLVMPIPE)],
  ['M9', 'no pointer and no 3D graphics', chrome, all(NO_POINTER, NO_WEBGL)],
  ['M10', 'a debugger on the page alone', chrome, put.tells({ cdp: true, debugsPageAlone: true })],
  [
    'M11',
    'a phone on the processor of a computer, whose worker names its brands',
    androidChrome,
    all(put.tells({ cdp: true }), put.page({ platform: 'Linux x86_64' }), sized(412, 915)),
  ],
];

export const ALONE: readonly Shown[] = [...AUTOMATION, ...TAMPER, ...MEDIUM, ...WEAK];
