import { androidChrome, chrome, firefox, iPhone, linuxChrome, safari } from './browsers.ts';
import { drawnBy, header, ja4, patched, type Shown, setFields, uaData } from './changes.ts';

/** T: what each rule is shown to fire on. */

const EMPTIED = { architecture: '', bitness: '', model: '', platformVersion: '', fullVersionList: [] };

const JA4 = {
  blink: 't13d1516h2_8daaf6152771_02713d6af862',
  gecko: 't13d1715h2_5b57614c22b0_3d5424432f57',
  webkit: 't13d2014h2_a09f3c656075_14788d8d241b',
} as const;

export const TAMPER_FIRES: readonly Shown[] = [
  [
    'T1',
    'a worker on Linux',
    chrome,
    setFields('worker', { userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/141.0.0.0' }),
  ],
  [
    'T1',
    'a phone with a worker on Windows',
    androidChrome,
    setFields('worker', { userAgent: 'Mozilla/5.0 (Windows NT 10.0) Chrome/141.0.0.0' }),
  ],
  [
    'T1',
    'a platform of Linux in the worker alone',
    chrome,
    setFields('worker', { platform: 'Linux x86_64' }),
  ],
  [
    'T1',
    'hints of Linux in the worker alone',
    chrome,
    setFields('worker', { uaData: { brands: [{ brand: 'Chromium', version: '141' }], platform: 'Linux' } }),
  ],
  ['T2', 'a Mac on Win32', safari, setFields('page', { platform: 'Win32' })],
  ['T2', 'Windows on Linux', chrome, setFields('page', { platform: 'Linux x86_64' })],
  ['T2', 'an iPhone on Linux', iPhone, setFields('page', { platform: 'Linux x86_64' })],
  ['T2', 'Android on a Mac', androidChrome, setFields('page', { platform: 'MacIntel' })],
  ['T3', 'another platform in the request', chrome, header('sec-ch-ua-platform', '"macOS"')],
  ['T3', 'the platform without quotes', chrome, header('sec-ch-ua-platform', 'Linux')],
  ['T3', 'a quote within the platform', chrome, header('sec-ch-ua-platform', '"Win"dows"')],
  ['T4', 'Linux in uaData of Windows', chrome, uaData({ platform: 'Linux' })],
  ['T4', 'Windows in uaData of Android', androidChrome, uaData({ platform: 'Windows' })],
  [
    'T5',
    'another browser in the long list',
    chrome,
    uaData({ fullVersionList: [{ brand: 'Chromium', version: '141' }] }),
  ],
  [
    'T5',
    'another spelling',
    chrome,
    uaData({
      brands: [
        { brand: 'Google chrome', version: '141' },
        { brand: 'Not?A_Brand', version: '8' },
        { brand: 'Chromium', version: '141' },
      ],
    }),
  ],
  [
    'T6',
    'another chip in the worker',
    chrome,
    setFields('worker', { renderer: 'ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 Direct3D11)' }),
  ],
  ['T7', "V8's eval under the name of Firefox", firefox, setFields('engine', { evalLength: 33 })],
  ['T7', "Gecko's eval under the name of Chrome", chrome, setFields('engine', { evalLength: 37 })],
  [
    'T7',
    "V8's words under the name of Safari",
    safari,
    setFields('engine', { errorMessage: "Cannot read properties of null (reading 'a')" }),
  ],
  [
    'T7',
    "Gecko's words under the name of Chrome",
    chrome,
    setFields('engine', { errorMessage: 'null has no properties' }),
  ],
  [
    'T7',
    "WebKit's words under the name of Firefox",
    firefox,
    setFields('engine', { errorMessage: "null is not an object (evaluating 'null.a')" }),
  ],
  [
    'T7',
    'client hints under the name of Firefox',
    firefox,
    setFields('page', { uaData: { brands: [], mobile: false, platform: 'Windows' } }),
  ],
  ['T7', "V8's eval under the name of an iPhone", iPhone, setFields('engine', { evalLength: 33 })],
  ...['webdriver', 'userAgent', 'platform', 'plugins', 'languages', 'vendor', 'Function.toString'].map(
    (name): Shown => ['T8', name, chrome, patched('canvas', name)],
  ),
  [
    'T9',
    'another browser in the request',
    chrome,
    header(
      'user-agent',
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    ),
  ],
  ['T10', 'emptied hints', chrome, uaData(EMPTIED)],
  ['T10', 'emptied hints, one of them missing', chrome, uaData({ ...EMPTIED, platformVersion: null })],
  ['T10', 'emptied hints without a long list', linuxChrome, uaData({ ...EMPTIED, fullVersionList: null })],
  [
    'T11',
    'Direct3D on Linux',
    linuxChrome,
    drawnBy('ANGLE (Intel, Intel(R) UHD Graphics 620 Direct3D11 vs_5_0 ps_5_0, D3D11)'),
  ],
  [
    'T11',
    'Metal on Windows',
    chrome,
    drawnBy('ANGLE (Apple, ANGLE Metal Renderer: Apple M1, Unspecified Version)'),
  ],
  ['T11', 'Mali on Windows', chrome, drawnBy('Mali-G78')],
  [
    'T11',
    'Adreno over OpenGL ES on Windows',
    chrome,
    drawnBy('ANGLE (Qualcomm, Adreno (TM) 740, OpenGL ES 3.2)'),
  ],
  ['T12', 'an Android phone', androidChrome, setFields('page', { maxTouchPoints: 0 })],
  ['T12', 'an iPhone', iPhone, setFields('page', { maxTouchPoints: 0 })],
  [
    'T13',
    'a page as large as a screen that its window does not fit on',
    chrome,
    setFields('screen', { innerWidth: 1920, innerHeight: 1080, outerWidth: 1936, outerHeight: 1168 }),
  ],
  ['N1', "Firefox's handshake under the name of Chrome", chrome, ja4(JA4.gecko)],
  ['N1', "Firefox 153's handshake under the name of Chrome", chrome, ja4('t13d1617h2_86a278354501_0')],
  ['N1', "WebKitGTK's handshake under the name of Firefox", firefox, ja4('t13d2913h2_723694b0fccc_0')],
  ['N1', "Python's handshake", chrome, ja4('t13d1813h1_85036bcba153_0')],
  ['N1', "Python's handshake with requests", firefox, ja4('t13d1812h1_85036bcba153_0')],
  ['N1', "Go's handshake", chrome, ja4('t13d1912h2_9dc949149365_0')],
  ['N1', "Node's handshake", safari, ja4('t13d5911h1_a33745022dd6_0')],
  ['N1', "Java's handshake", chrome, ja4('t13d3713h2_db35923f8641_0')],
  ['N1', "curl's handshake", chrome, ja4('t13d3112h2_e8f1e7e78f70_0')],
  ['N1', "Safari's handshake under the name of Chrome", chrome, ja4(JA4.webkit)],
  ['N1', "Chrome's handshake under the name of Firefox", firefox, ja4(JA4.blink)],
  [
    'N1',
    "Chrome's handshake under the name of Chrome on an iPhone",
    () => iPhone('CriOS/141.0.0.0 Mobile/15E148'),
    ja4(JA4.blink),
  ],
];
