import { all, type Change, header, setFields, uaData } from './changes.ts';

/** A: what each rule is shown to fire on, in Chrome. */

export const globals = (...names: string[]): Change => setFields('tells', { globals: names });
const brands = (brand: string, list = 'brands'): Change => uaData({ [list]: [{ brand, version: '99' }] });
const HEADLESS =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/141.0.0.0 Safari/537.36';

export const AUTOMATION_FIRES: readonly (readonly [string, string, Change])[] = [
  ['A1', 'webdriver in the page', setFields('page', { webdriver: true })],
  ['A1', 'webdriver in a frame', setFields('frame', { webdriver: true })],
  ['A2', 'HeadlessChrome in the page', setFields('page', { userAgent: HEADLESS })],
  ['A2', 'HeadlessChrome in appVersion', setFields('page', { appVersion: HEADLESS.slice(8) })],
  ['A2', 'HeadlessChrome in the worker alone', setFields('worker', { userAgent: HEADLESS })],
  ['A2', 'HeadlessChrome in a frame alone', setFields('frame', { userAgent: HEADLESS })],
  ['A2', 'HeadlessChrome in the request alone', header('user-agent', HEADLESS)],
  [
    'A2',
    'HeadlessChrome in Sec-CH-UA alone',
    header('sec-ch-ua', '"HeadlessChrome";v="141", "Chromium";v="141"'),
  ],
  ['A2', 'HeadlessChrome among the brands', brands('HeadlessChrome')],
  ['A2', 'HeadlessChrome among the full versions', brands('HeadlessChrome', 'fullVersionList')],
  [
    'A2',
    "HeadlessChrome among the worker's brands",
    setFields('worker', { uaData: { brands: [{ brand: 'HeadlessChrome', version: '141' }] } }),
  ],
  ...['PhantomJS/2.1.1', 'SlimerJS/1.0', 'HappyDOM/15.0', 'jsdom/25.0'].map(
    (product) => ['A2', product, header('user-agent', `Mozilla/5.0 (Unknown) ${product}`)] as const,
  ),
  ...[
    'cdc_adoQpoasnfa76pfcZLmcfl_Array',
    '$cdc_asdjflasutopfhvcZLmcfl_',
    '__pwInitScripts',
    '__playwright__binding__',
    '__selenium_unwrapped',
    '__webdriver_evaluate',
    'domAutomation',
    'domAutomationController',
    'callPhantom',
    '__nightmare',
  ].map((name) => ['A3', name, globals('a', name)] as const),
  [
    'A4',
    'in the header alone',
    header('sec-ch-ua', '" Not A;Brand";v="99", "Chromium";v="141", "Google Chrome";v="141"'),
  ],
  ['A4', 'in the header, without its space', header('sec-ch-ua', '"Not A;Brand";v="99", "Chromium";v="141"')],
  ['A4', 'in the page alone', brands(' Not A;Brand')],
  ['A4', 'among the full versions', brands(' Not A;Brand', 'fullVersionList')],
  ['A5', 'an empty list in the worker', setFields('worker', { uaData: { brands: [], platform: 'Windows' } })],
  ['A5', 'no list in the worker', setFields('worker', { uaData: { platform: 'Windows' } })],
  [
    'A7',
    'the same in a window of exactly the screen, as a headless driver sets it up',
    all(
      setFields('worker', { uaData: { brands: [], platform: 'Windows' } }),
      setFields('screen', { innerWidth: 1920, innerHeight: 1080, outerWidth: 1920, outerHeight: 1080 }),
    ),
  ],
  ['A6', 'a frame that is there too early', setFields('frame', { srcdocPreattached: true })],
];
