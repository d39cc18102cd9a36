import { describe, expect, it } from 'vitest';
import {
  androidChrome,
  androidDesktopMode,
  type Browser,
  brave,
  changed,
  chrome,
  firefox,
  firefoxRfp,
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
  insecure,
  named,
  nothing,
  setFields,
} from './support/changes.ts';
import { FULL_SCREEN } from './support/fires-medium.ts';

/** The exemptions of M and W: devices and places of which the oddity is nothing odd. */

const NO_POINTER = setFields('media', { pointer: 'none', hover: false });
const TV =
  'Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36';
const CONSOLE =
  'Mozilla/5.0 (PlayStation; PlayStation 5/6.50) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/15.4 Safari/605.1.15';

const TABLET =
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36';

type Row = readonly [string, string, () => Browser, Change];

const SILENT: readonly Row[] = [
  ['M1', 'larger by exactly 32 px', chrome, setFields('screen', { outerWidth: 1952, outerHeight: 1112 })],
  ['M1', 'a screen that does not say', chrome, setFields('screen', { width: null, outerWidth: 9999 })],
  ['M2', 'no answer', chrome, setFields('tells', { cdp: null })],
  ['M4', 'a WebView', webView, setFields('tells', { notificationMismatch: true })],
  ['M4', 'no answer', chrome, setFields('tells', { notificationMismatch: null })],
  ['M5', 'a television', chrome, all(named(TV, 'Linux armv7l'), NO_POINTER)],
  ['M5', 'a games console', chrome, all(named(CONSOLE, 'PlayStation 5'), NO_POINTER)],
  [
    'M5',
    'an Xbox',
    chrome,
    all(
      named(
        'Mozilla/5.0 (Windows NT 10.0; Win64; x64; Xbox; Xbox Series X) AppleWebKit/537.36 Chrome/141.0.0.0 Safari/537.36',
        'Win32',
      ),
      NO_POINTER,
    ),
  ],
  ['M5', 'a phone', androidChrome, NO_POINTER],
  [
    'M5',
    'an Android tablet',
    chrome,
    all(
      named(
        'Mozilla/5.0 (Linux; Android 14; SM-X700) AppleWebKit/537.36 Chrome/141.0.0.0 Safari/537.36',
        'Linux armv81',
      ),
      NO_POINTER,
    ),
  ],
  ['M5', 'a pointer that does not hover', chrome, setFields('media', { pointer: 'coarse', hover: false })],
  ['M5', 'no answer about hovering', chrome, setFields('media', { pointer: 'none', hover: null })],
  ['M6', 'a phone', androidChrome, nothing],
  [
    'M6',
    'Android on a desk, without a touch screen',
    androidChrome,
    all(named(TABLET, 'Linux armv81'), setFields('page', { maxTouchPoints: 0, chromeObject: false })),
  ],
  ['M6', 'a WebView', webView, nothing],
  ['M6', 'Firefox', firefox, nothing],
  ['M6', 'Chrome on an iPhone', () => iPhone('CriOS/141.0.0.0 Mobile/15E148'), nothing],
  ['M6', 'no answer', chrome, setFields('page', { chromeObject: null })],
  ['M7', 'llvmpipe is only weak', linuxChrome, drawnBy('llvmpipe (LLVM 19.1.7, 256 bits)')],
  ['M7', 'no renderer', chrome, drawnBy(null)],
  [
    'M8',
    'software that names no browser',
    chrome,
    all(header('user-agent', 'curl/8.14.1'), header('accept-language', undefined)),
  ],
  [
    'N2',
    'http: Chromium keeps both to itself',
    chrome,
    all(header('sec-ch-ua', undefined), header('sec-fetch-site', undefined), insecure),
  ],
  ['N2', 'a WebView', webView, nothing],
  ['N2', 'Firefox sends no client hints', firefox, nothing],
  ['N2', 'Safari sends none', safari, nothing],
  ['N2', 'Chrome on an iPhone', () => iPhone('CriOS/141.0.0.0 Mobile/15E148'), nothing],
  [
    'N2',
    'a Chrome before 89',
    chrome,
    all(
      named('Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/88.0.1 Safari/537.36', 'Win32'),
      header('sec-ch-ua', undefined),
    ),
  ],
  ['N3', 'another region', chrome, header('accept-language', 'en-US,en;q=0.9')],
  ['N3', 'another case', chrome, header('accept-language', 'EN')],
  ['N3', 'any language', chrome, header('accept-language', '*')],
  ['N3', 'spoofed English of resistFingerprinting', firefoxRfp, setFields('page', { language: 'de-DE' })],
  ['N3', 'no language in the page', chrome, setFields('page', { language: null })],
  ['W1', '600 × 800', chrome, setFields('screen', { width: 600, height: 800 })],
  ['W1', '800 × 900', chrome, setFields('screen', { width: 800, height: 900 })],
  ...['innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'].map(
    (side) =>
      [
        'W2',
        `all of the screen but ${side}`,
        chrome,
        all(FULL_SCREEN, setFields('screen', { [side]: 600 })),
      ] as const,
  ),
  ['W3', 'a page as large as its window', chrome, FULL_SCREEN],
  ['W3', 'a window without a size', chrome, setFields('screen', { outerWidth: 0, outerHeight: 0 })],
  ['W4', 'a phone', androidChrome, nothing],
  [
    'W4',
    'a name that is no browser’s',
    chrome,
    all(named('Something/1.0', 'Win32'), setFields('page', { pluginCount: 0 })),
  ],
  ['W5', 'a graphics card', chrome, nothing],
  ['W6', 'London', chrome, setFields('time', { zone: 'Europe/London' })],
  ['W8', 'a maker without a name', chrome, setFields('graphics', { vendor: 'Intel', renderer: null })],
  ['W8', 'no graphics at all is another matter: incomplete', chrome, groups({ graphics: null })],
];

describe('stays silent', () => {
  it.each(SILENT)('%s: %s', (id, _name, make, change) => {
    expect(changed(make, change).ids).not.toContain(id);
  });

  it.each<readonly [string, () => Browser]>([
    ['"desktop site" on a phone', androidDesktopMode],
    ['Brave', brave],
  ])('M5 for %s', (_name, make) => {
    expect(changed(make, nothing).ids).not.toContain('M5');
  });
});

describe('another engine under the name of Chrome', () => {
  const ENGINES = {
    gecko: { evalLength: 37, errorMessage: 'null has no properties' },
    webkit: { evalLength: 37, errorMessage: "null is not an object (evaluating 'null.a')" },
  } as const;
  const HINTS = { uaData: chrome().signals.page['uaData'] };
  const SILENT_CHROME = all(
    setFields('page', { chromeObject: false, uaData: null }),
    header('sec-ch-ua', undefined),
    header('sec-fetch-site', undefined),
  );
  const strong = (...changes: readonly Change[]): readonly string[] =>
    changed(chrome, all(SILENT_CHROME, ...changes)).strong;

  it.each(Object.entries(ENGINES))('%s with every mark of it: neither M6 nor N2', (_name, engine) => {
    expect(strong(setFields('engine', engine))).toEqual(['T7']);
  });

  it.each([
    ['its words alone', setFields('engine', { ...ENGINES.gecko, evalLength: 33 })],
    ["its eval with V8's words", setFields('engine', { evalLength: 37 })],
    ['its eval without words', setFields('engine', { evalLength: 37, errorMessage: null })],
    ['no engine at all', groups({ engine: null })],
    [
      'its words and its eval, with client hints',
      all(setFields('page', HINTS), setFields('engine', ENGINES.gecko)),
    ],
  ])('%s: M6 and N2', (_name, change) => {
    expect(strong(change)).toEqual(expect.arrayContaining(['M6', 'N2']));
  });
});
