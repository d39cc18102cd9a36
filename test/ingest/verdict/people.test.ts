import { describe, expect, it } from 'vitest';
import * as browsers from './support/browsers.ts';
import { type Browser, changed, gpu, judge } from './support/browsers.ts';
import {
  all,
  type Change,
  drawnBy,
  header,
  insecure,
  named,
  patched,
  setFields,
  uaData,
} from './support/changes.ts';

/** A person wrongly called a bot is the worse error: nobody here is one. */

const PEOPLE: readonly (readonly [string, () => Browser])[] = [
  ['Chrome on Windows', browsers.chrome],
  ['Chrome on Linux', browsers.linuxChrome],
  ['Chrome on a Chromebook', browsers.chromebook],
  ['Chrome on Android', browsers.androidChrome],
  ['an Android WebView', browsers.webView],
  ['Firefox on Windows', browsers.firefox],
  ['Firefox on Linux', () => browsers.firefox('X11; Linux x86_64', 'Linux x86_64')],
  ['Firefox on a Mac', () => browsers.firefox('Macintosh; Intel Mac OS X 10.15', 'MacIntel')],
  ['Safari on a Mac', browsers.safari],
  ['an iPhone', browsers.iPhone],
  ['Chrome on an iPhone', () => browsers.iPhone('CriOS/141.0.0.0 Mobile/15E148 Safari/604.1')],
  ['Firefox on an iPhone', () => browsers.iPhone('FxiOS/145.0 Mobile/15E148 Safari/605.1.15')],
  ['an iPad in desktop mode', browsers.iPad],
  ['Brave', browsers.brave],
  ['Firefox with resistFingerprinting', browsers.firefoxRfp],
];

describe('people', () => {
  it.each(PEOPLE)('%s is human, without a strong rule', (_name, make) => {
    const judged = judge(make());
    expect({ class: judged.class, strong: judged.strong }).toEqual({ class: 'human', strong: [] });
    expect(judged.score).toBeLessThanOrEqual(0.1);
    expect(judged.inconsistency).toBe(0);
    expect(judged.automation).toBe(false);
  });

  it.each<readonly [string, () => Browser]>([
    ['Chrome', browsers.linuxChrome],
    ['Firefox', () => browsers.firefox('X11; Linux x86_64', 'Linux x86_64')],
  ])('%s on a remote desktop, with neither pointer nor graphics chip, is unknown at most', (_name, make) => {
    for (const renderer of [null, 'llvmpipe (LLVM 19.1.7, 256 bits)']) {
      const judged = changed(make, (browser) => {
        gpu(browser, renderer);
        Object.assign(browser.signals.graphics, renderer === null ? { vendor: null } : {});
        Object.assign(browser.signals.media, { pointer: 'none', hover: false });
      });
      expect(judged).toMatchObject({ class: 'unknown', strong: ['M5'] });
    }
  });

  it('"desktop site" on a phone is no automation', () => {
    expect(judge(browsers.androidDesktopMode()).class).not.toBe('undeclared_automation');
  });

  it.each(PEOPLE)('%s with developer tools open is unknown at most', (_name, make) => {
    const judged = changed(make, ({ signals }) => {
      signals.tells['cdp'] = true;
    });
    expect(judged).toMatchObject({ class: 'unknown', strong: ['M2'] });
  });

  it.each(PEOPLE)('%s without WebGL, worker, input and time is human all the same', (_name, make) => {
    const judged = changed(make, (browser) => {
      gpu(browser, null);
      Object.assign(browser.signals, { worker: null, input: null, time: null });
    });
    expect(judged.class).not.toBe('undeclared_automation');
    expect(judged.strong).toEqual([]);
  });
});

const SWIFTSHADER =
  'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)';
const virtual = drawnBy(SWIFTSHADER);
const remote = setFields('media', { pointer: 'none', hover: false });
const tools = all(
  setFields('tells', { cdp: true, debugsPageAlone: false }),
  setFields('worker', { cdp: true }),
);
const SAFARI =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15';
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1';
const emptied = { architecture: '', bitness: '', model: '', platformVersion: '', fullVersionList: [] };

/** "Network conditions" of the tools: the name changes in page, worker and request, the platform does not. */
const renamed = (userAgent: string): Change =>
  all(tools, named(userAgent, 'Win32'), header('sec-ch-ua', undefined), uaData(emptied));

const PROTECTED: readonly (readonly [string, Change])[] = [
  ['developer tools with the name of Safari for the Mac', renamed(SAFARI)],
  ['developer tools with the name of an iPhone', renamed(IPHONE)],
  [
    'the same without a worker that could be asked',
    all(renamed(SAFARI), ({ signals }) => Object.assign(signals, { worker: null })),
  ],
  ['the same on a virtual machine', all(renamed(SAFARI), virtual)],
  ['undocked developer tools on a virtual machine', all(tools, virtual)],
  ['developer tools on a remote desktop', all(tools, remote)],
  [
    'developer tools on a remote desktop without graphics',
    all(tools, remote, drawnBy('llvmpipe (LLVM 19.1.7)')),
  ],
  ['developer tools beside a second screen', all(tools, setFields('screen', { outerWidth: 1990 }))],
  [
    'developer tools and a page whose worker lost its brands',
    all(renamed(SAFARI), setFields('worker', { uaData: { brands: [] } })),
  ],
  [
    'a virtual machine with a name of another system',
    all(virtual, setFields('page', { platform: 'Linux x86_64' })),
  ],
  ['a virtual machine beside a second screen', all(virtual, setFields('screen', { outerWidth: 1990 }))],
  ['a virtual machine behind a proxy that strips headers', all(virtual, header('sec-ch-ua', undefined))],
  [
    'a virtual machine with an add-on that hides the language',
    all(virtual, header('accept-language', undefined)),
  ],
  ['a remote desktop over http', all(remote, insecure)],
  ['a virtual machine that is reached by remote desktop', all(virtual, remote)],
  ['developer tools on a virtual machine that is reached by remote desktop', all(virtual, remote, tools)],
];

describe('people to protect (signals.md section 2b)', () => {
  it.each(PROTECTED)('%s is unknown', (_name, change) => {
    expect(changed(browsers.chrome, change).class).toBe('unknown');
  });
});

const WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36';
const bare = all(remote, drawnBy('llvmpipe (LLVM 19.1.7)'));

/** An add-on patches the page and the request; the worker and the detailed browser data keep their name. */
const byAddOn = all(
  setFields('page', { userAgent: WINDOWS, platform: 'Win32' }),
  header('user-agent', WINDOWS),
  patched('userAgent', 'platform'),
);
/** A switch of the browser: the platform keeps its name, and the detailed browser data is emptied. */
const bySwitch = all(named(WINDOWS, 'Linux x86_64'), uaData(emptied));

const RENAMED: readonly (readonly [string, readonly string[], Change])[] = [
  ['an add-on', ['T1', 'T4', 'T8'], byAddOn],
  ['an add-on, and developer tools', ['T1', 'T4', 'T8'], all(byAddOn, tools)],
  ['an add-on, on a remote desktop', ['T1', 'T4', 'T8'], all(byAddOn, bare)],
  ['an add-on, and developer tools, on a remote desktop', ['T1', 'T4', 'T8'], all(byAddOn, tools, bare)],
  ['an add-on, on a virtual machine', ['T1', 'T4', 'T8'], all(byAddOn, virtual, remote)],
  ['a switch', ['T2', 'T4', 'T10'], bySwitch],
  ['a switch, and developer tools', ['T2', 'T4', 'T10'], all(bySwitch, tools)],
  ['a switch, on a remote desktop', ['T2', 'T4', 'T10'], all(bySwitch, bare)],
  [
    'a switch, on a virtual machine that is reached by remote desktop',
    ['T2', 'T4', 'T10'],
    all(bySwitch, virtual, remote),
  ],
  [
    'a switch, seen by the mouse too',
    ['T14', 'T2', 'T4', 'T10'],
    all(bySwitch, setFields('input', { offGrid: false }), tools, bare),
  ],
];

describe('people whose browser names another system', () => {
  it.each(RENAMED)('by %s: %j alone, unknown', (_name, strong, change) => {
    expect(changed(browsers.linuxChrome, change)).toMatchObject({ class: 'unknown', strong });
  });

  it.each<readonly [string, Change]>([
    ['the emptied data alone, as headless browsers have it', uaData(emptied)],
    ['replaced functions alone', patched('userAgent')],
    ['another name for the worker alone', setFields('worker', { userAgent: WINDOWS, platform: 'Win32' })],
    ['an oddity that no name explains', all(bySwitch, setFields('page', { chromeObject: false }))],
    [
      'lists that name different browsers',
      all(bySwitch, uaData({ fullVersionList: [{ brand: 'Other', version: '1' }] })),
    ],
    ['a debugger on the page alone', all(bySwitch, setFields('tells', { cdp: true, debugsPageAlone: true }))],
  ])('is automation with neither pointer nor graphics beside %s', (_name, change) => {
    expect(changed(browsers.linuxChrome, all(bare, change)).class).toBe('undeclared_automation');
  });
});

describe('what protects them is no way around the rules', () => {
  it.each<readonly [string, Change]>([
    [
      'software graphics in a window that its screen does not hold',
      all(
        virtual,
        setFields('screen', { innerWidth: 1920, innerHeight: 1080, outerWidth: 1936, outerHeight: 1168 }),
      ),
    ],
    [
      'a name of another system and a debugger on the page alone',
      all(renamed(SAFARI), setFields('tells', { debugsPageAlone: true })),
    ],
    [
      "an iPhone's name, size and touch, and a worker that no phone view leaves like that",
      all(
        renamed(IPHONE),
        setFields('media', { pointer: 'coarse', hover: false }),
        setFields('page', { maxTouchPoints: 5 }),
        setFields('screen', { width: 390, height: 844, outerWidth: 390, outerHeight: 844 }),
      ),
    ],
    ['a request that was patched, with a debugger', all(tools, header('sec-ch-ua-platform', '"macOS"'))],
  ])('%s is automation', (_name, change) => {
    expect(changed(browsers.chrome, change).class).toBe('undeclared_automation');
  });
});
