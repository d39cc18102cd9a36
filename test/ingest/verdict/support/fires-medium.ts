import { androidChrome, chrome, firefox, linuxChrome } from './browsers.ts';
import { all, drawnBy, header, insecure, named, type Shown, setFields } from './changes.ts';

/** M and W: what each rule is shown to fire on. */

const NO_POINTER = setFields('media', { pointer: 'none', hover: false });
const SWIFTSHADER =
  'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)';

/** One size for all: the screen, the window and its page. */
export const FULL_SCREEN = setFields('screen', {
  width: 900,
  height: 700,
  innerWidth: 900,
  innerHeight: 700,
  outerWidth: 900,
  outerHeight: 700,
});

export const MEDIUM_FIRES: readonly Shown[] = [
  ['M1', 'wider by more than 32 px', chrome, setFields('screen', { outerWidth: 1920 + 33 })],
  ['M1', 'higher by more than 32 px', chrome, setFields('screen', { outerHeight: 1080 + 33 })],
  ['M2', 'in the page', chrome, setFields('tells', { cdp: true })],
  ['M2', 'in the worker', chrome, setFields('worker', { cdp: true })],
  ['M4', 'denied and to be asked', chrome, setFields('tells', { notificationMismatch: true })],
  [
    'M4',
    'the same, told over http',
    chrome,
    all(setFields('tells', { notificationMismatch: true }), insecure),
  ],
  ['M5', 'a desktop without a pointer', chrome, NO_POINTER],
  ['M5', 'a Firefox without a pointer', firefox, NO_POINTER],
  ['M6', 'a desktop Chromium without window.chrome', chrome, setFields('page', { chromeObject: false })],
  ['M7', 'SwiftShader', chrome, drawnBy(SWIFTSHADER)],
  ['M8', 'a browser without Accept-Language', chrome, header('accept-language', undefined)],
  ['M8', 'a browser with an empty Accept-Language', chrome, header('accept-language', '')],
  ['N2', 'Chrome with an empty Sec-CH-UA', chrome, header('sec-ch-ua', '')],
  ['N2', 'Chrome without Sec-CH-UA', chrome, header('sec-ch-ua', undefined)],
  ['N2', 'Chrome without fetch metadata', chrome, header('sec-fetch-site', undefined)],
  [
    'N2',
    'a Chrome of 89',
    chrome,
    all(
      named('Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/89.0.1 Safari/537.36', 'Win32'),
      header('sec-ch-ua', undefined),
    ),
  ],
];

export const WEAK_FIRES: readonly Shown[] = [
  [
    'W1',
    '800 × 600',
    chrome,
    setFields('screen', {
      width: 800,
      height: 600,
      outerWidth: 780,
      outerHeight: 580,
      innerWidth: 770,
      innerHeight: 500,
    }),
  ],
  ['W2', 'one size for all', chrome, FULL_SCREEN],
  ['W3', 'a page wider than its window', chrome, setFields('screen', { innerWidth: 1441 })],
  ['W3', 'a page higher than its window', chrome, setFields('screen', { innerHeight: 981 })],
  ['W4', 'a desktop without plug-ins', chrome, setFields('page', { pluginCount: 0 })],
  ['W5', 'llvmpipe', linuxChrome, drawnBy('llvmpipe (LLVM 19.1.7, 256 bits)')],
  [
    'W5',
    'the basic renderer',
    chrome,
    drawnBy('ANGLE (Microsoft, Microsoft Basic Render Driver Direct3D11)'),
  ],
  ['W6', 'UTC', chrome, setFields('time', { zone: 'UTC' })],
  ['W9', 'an Electron application', chrome, setFields('tells', { processType: 'renderer' })],
  ['W8', 'no WebGL', chrome, setFields('graphics', { vendor: null, renderer: null })],
  [
    'N4',
    'a hosting network',
    chrome,
    (browser) => {
      browser.hosting = true;
    },
  ],
  ['N3', 'another language', chrome, header('accept-language', 'de-DE,de;q=0.9,en;q=0.8')],
];

/** Rules that stand beside another one by their nature: no case shows them alone. */
export const PAIRED_FIRES: readonly Shown[] = [
  ['M9', 'no pointer and software graphics', chrome, all(NO_POINTER, drawnBy('llvmpipe (LLVM 19.1.7)'))],
  [
    'M9',
    'no pointer and no 3D graphics',
    chrome,
    all(NO_POINTER, setFields('graphics', { vendor: null, renderer: null })),
  ],
  ['M10', 'a debugger on the page alone', chrome, setFields('tells', { cdp: true, debugsPageAlone: true })],
  [
    'M11',
    'a phone on the processor of a computer, whose worker names its brands',
    androidChrome,
    all(
      setFields('tells', { cdp: true }),
      setFields('page', { platform: 'Linux x86_64' }),
      setFields('screen', { width: 412, height: 915, outerWidth: 412, outerHeight: 915 }),
    ),
  ],
];
