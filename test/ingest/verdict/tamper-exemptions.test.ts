import { describe, expect, it } from 'vitest';
import {
  androidChrome,
  androidDesktopMode,
  type Browser,
  brave,
  changed,
  chrome,
  chromebook,
  firefox,
  firefoxRfp,
  iPad,
  iPhone,
  linuxChrome,
  safari,
  webView,
} from './support/browsers.ts';
import {
  all,
  type Change,
  drawnBy,
  groups,
  header,
  ja4,
  named,
  nothing,
  patched,
  setFields,
  uaData,
} from './support/changes.ts';

/** The exemptions of T: browsers that contradict themselves honestly. */

const EMPTIED = { architecture: '', bitness: '', model: '', platformVersion: '', fullVersionList: [] };

const WEBVIEW_BRANDS = [
  { brand: 'Android WebView', version: '141' },
  { brand: 'Chromium', version: '141' },
];

const RFP_HEADER = 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0';

const KAIOS = 'Mozilla/5.0 (Mobile; Nokia_8110_4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5';

function androidTv(): Browser {
  const browser = androidChrome();
  named(String(browser.headers['user-agent']).replace(' Mobile', ''), 'Linux armv81')(browser);
  Object.assign(browser.signals.page, { maxTouchPoints: 0 });
  return browser;
}

const JA4 = {
  blink: 't13d1516h2_8daaf6152771_02713d6af862',
  gecko: 't13d1715h2_5b57614c22b0_3d5424432f57',
  webkit: 't13d2014h2_a09f3c656075_14788d8d241b',
} as const;

type Row = readonly [string, string, () => Browser, Change];

const SILENT: readonly Row[] = [
  ['T1', 'an iPad in desktop mode', iPad, nothing],
  ['T1', 'no worker', chrome, groups({ worker: null })],
  [
    'T1',
    'a worker that does not say',
    chrome,
    setFields('worker', { userAgent: null, platform: null, uaData: null }),
  ],
  [
    'T1',
    'a worker on a platform that nobody knows',
    chrome,
    setFields('worker', { platform: 'FreeBSD amd64' }),
  ],
  ['T1', '"desktop site" on Android', androidDesktopMode, nothing],
  ['T1', 'a worker of no known system', chrome, setFields('worker', { userAgent: 'Mozilla/5.0' })],
  ['T2', 'Android is Linux to its platform', androidChrome, nothing],
  ['T2', 'ChromeOS is Linux to its platform', chromebook, nothing],
  ['T2', '"desktop site" on Android', androidDesktopMode, nothing],
  ['T2', 'an iPad on MacIntel', iPhone, setFields('page', { platform: 'MacIntel' })],
  ['T2', 'a Macintosh on iPad', iPad, setFields('page', { platform: 'iPad' })],
  ['T2', 'Firefox with resistFingerprinting', firefoxRfp, setFields('page', { platform: 'Linux x86_64' })],
  ['T2', 'no platform', chrome, setFields('page', { platform: null })],
  ['T2', 'an unknown platform', chrome, setFields('page', { platform: 'FreeBSD amd64' })],
  ['T3', 'no header', chrome, header('sec-ch-ua-platform', undefined)],
  ['T3', 'an empty header', chrome, header('sec-ch-ua-platform', '""')],
  ['T3', 'no uaData', chrome, setFields('page', { uaData: null })],
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
    ({ signals }) => {
      const data = signals.page['uaData'] as { fullVersionList: unknown[] };
      data.fullVersionList = [...data.fullVersionList].reverse();
    },
  ],
  ['T6', 'no renderer in the worker', chrome, setFields('worker', { renderer: null })],
  ['T6', 'no renderer in the page', chrome, setFields('graphics', { renderer: null })],
  ['T6', 'Brave', brave, setFields('worker', { renderer: 'ANGLE (X)' })],
  ['T6', 'Firefox with resistFingerprinting', firefoxRfp, setFields('worker', { renderer: 'ANGLE (X)' })],
  [
    'T7',
    'a WebView',
    webView,
    setFields('engine', { evalLength: 37, errorMessage: 'null has no properties' }),
  ],
  [
    'T7',
    'an unknown family',
    chrome,
    all(named('Lynx/2.9', 'Linux x86_64'), setFields('engine', { evalLength: 37 })),
  ],
  [
    'T7',
    'every browser of iOS is WebKit',
    () => iPhone('CriOS/141.0.0.0 Mobile/15E148 Safari/604.1'),
    nothing,
  ],
  [
    'T7',
    'an engine that does not say',
    chrome,
    setFields('engine', { evalLength: null, errorMessage: null }),
  ],
  ['T7', 'words that no engine uses', chrome, setFields('engine', { errorMessage: 'x is not a function' })],
  ...['canvas', 'audio', 'webgl', 'screen', 'hardwareConcurrency'].map(
    (name): Row => ['T8', `only ${name}: a privacy extension`, chrome, patched(name)],
  ),
  [
    'T8',
    'all read-outs together',
    chrome,
    patched('canvas', 'audio', 'webgl', 'screen', 'hardwareConcurrency'),
  ],
  ['T8', 'nothing', chrome, patched()],
  ['T9', 'no header', chrome, header('user-agent', undefined)],
  ['T9', 'no page', chrome, setFields('page', { userAgent: null })],
  ['T9', 'resistFingerprinting: another system in the request', firefoxRfp, header('user-agent', RFP_HEADER)],
  ['T10', 'Brave reduces', brave, uaData({ architecture: '', bitness: '', model: '', platformVersion: '' })],
  ['T10', 'desktop Linux has an empty version', linuxChrome, nothing],
  [
    'T10',
    'hints that were not asked for',
    chrome,
    uaData({ architecture: null, bitness: null, model: null, platformVersion: null, fullVersionList: null }),
  ],
  [
    'T10',
    'hints of which half are missing',
    chrome,
    uaData({ architecture: '', bitness: '', model: null, platformVersion: null, fullVersionList: null }),
  ],
  ['T10', 'hints of which one says something', chrome, uaData({ ...EMPTIED, platformVersion: '15.0.0' })],
  [
    'T10',
    'a WebView that an app gave the name of Chrome',
    androidChrome,
    uaData({ ...EMPTIED, brands: WEBVIEW_BRANDS }),
  ],
  ['T10', 'no brands', chrome, uaData({ ...EMPTIED, brands: [] })],
  ['T11', '"Mozilla"', firefoxRfp, nothing],
  ['T11', '"or similar"', () => firefox('X11; Linux x86_64', 'Linux x86_64'), nothing],
  ['T11', 'no renderer', linuxChrome, drawnBy(null)],
  [
    'T11',
    'Adreno over Direct3D11 on Windows',
    chrome,
    drawnBy('ANGLE (Qualcomm, Qualcomm(R) Adreno(TM) 690 GPU Direct3D11, D3D11)'),
  ],
  ['T11', 'Metal on a Mac', safari, drawnBy('ANGLE (Apple, ANGLE Metal Renderer: Apple M1)')],
  ['T11', 'Metal on an iPhone', iPhone, drawnBy('Apple Metal')],
  ['T11', 'Adreno on Android', androidChrome, nothing],
  ['T12', 'five touch points of a desktop: RFP', firefoxRfp, nothing],
  ['T12', 'a desktop without a touch screen', chrome, nothing],
  [
    'T12',
    'a phone with keys: KaiOS',
    chrome,
    all(named(KAIOS, ''), setFields('page', { maxTouchPoints: 0 })),
  ],
  ['T12', 'Android on a television', androidTv, nothing],
  ['T12', 'a phone that does not say', androidChrome, setFields('page', { maxTouchPoints: null })],
  ['N1', 'the handshake of its family', chrome, ja4(JA4.blink)],
  ['N1', "Gecko's of Firefox", firefox, ja4(JA4.gecko)],
  ['N1', "WebKit's of Chrome on an iPhone", () => iPhone('CriOS/141.0.0.0 Mobile/15E148'), ja4(JA4.webkit)],
  ['N1', "Chromium 156's of Chrome", chrome, ja4('t13d1517h2_8daaf6152771_0')],
  ['N1', "QtWebEngine's, with an extension less", chrome, ja4('t13d1515h2_8daaf6152771_0')],
  ['N1', "Firefox 153's of Firefox", firefox, ja4('t13d1616h2_86a278354501_0')],
  ['N1', "WebKitGTK's of Safari", safari, ja4('t13d2913h2_723694b0fccc_0')],
  [
    'N1',
    'a middlebox that offers what OpenSSL has, without h2',
    chrome,
    ja4('t13d3112h1_e8f1e7e78f70_b26ce05bbdd6'),
  ],
  ['N1', 'a resumed session: another part c', chrome, ja4(JA4.blink.replace(/_[^_]*$/, '_000000000000'))],
  ['N1', 'garbage', chrome, ja4('x')],
  ['N1', 'a name that is no browser’s', chrome, all(ja4(JA4.gecko), named('Something/1.0', 'Win32'))],
  ['N1', 'no handshake', chrome, nothing],
];

describe('stays silent', () => {
  it.each(SILENT)('%s: %s', (id, _name, make, change) => {
    expect(changed(make, change).ids).not.toContain(id);
  });
});
