import { describe, expect, it } from 'vitest';
import type { Facts } from '../../../src/ingest/verdict/facts.ts';
import {
  isPhoneView,
  isStaged,
  isStagedPhone,
  windowOutgrowsScreen,
} from '../../../src/ingest/verdict/rule.ts';
import * as browsers from './support/browsers.ts';
import {
  all,
  androidChrome,
  type Browser,
  type Change,
  changed,
  chrome,
  DEVICE_TOOLBAR,
  DEVTOOLS,
  drawnBy,
  EMPTIED,
  groups,
  header,
  judge,
  LLVMPIPE,
  linuxChrome,
  NO_POINTER,
  NO_WEBGL,
  named,
  OUTGROWN,
  patched,
  put,
  request,
  SHRUNK_DESKTOP,
  SWIFTSHADER,
  sized,
  uaData,
} from './support/browsers.ts';

/** A person wrongly called a bot is the worse error: nobody here is one. */

const linuxFirefox = (): Browser => browsers.firefox('X11; Linux x86_64', 'Linux x86_64');

const PEOPLE: readonly (readonly [string, () => Browser])[] = [
  ['Chrome on Windows', chrome],
  ['Chrome on Linux', linuxChrome],
  ['Chrome on a Chromebook', browsers.chromebook],
  ['Chrome on Android', androidChrome],
  ['an Android WebView', browsers.webView],
  ['Firefox on Windows', browsers.firefox],
  ['Firefox on Linux', linuxFirefox],
  ['Firefox on a Mac', () => browsers.firefox('Macintosh; Intel Mac OS X 10.15', 'MacIntel')],
  ['Safari on a Mac', browsers.safari],
  ['an iPhone', browsers.iPhone],
  ['Chrome on an iPhone', () => browsers.iPhone('CriOS/141.0.0.0 Mobile/15E148 Safari/604.1')],
  ['Firefox on an iPhone', () => browsers.iPhone('FxiOS/145.0 Mobile/15E148 Safari/605.1.15')],
  ['an iPad in desktop mode', browsers.iPad],
  ['Brave', browsers.brave],
  ['Firefox with resistFingerprinting', browsers.firefoxRfp],
];

const ENGINES = [
  { evalLength: 33, errorMessage: 'Cannot read properties of null' },
  { evalLength: 37, errorMessage: 'null is not an object' },
];

describe('people', () => {
  it.each(PEOPLE)(
    '%s is human without a strong rule, and unknown at most with developer tools',
    (_name, make) => {
      const judged = judge(make());
      expect(judged).toMatchObject({ class: 'human', strong: [], inconsistency: 0, automation: false });
      expect(judged.score).toBeLessThanOrEqual(0.1);
      const open = changed(make, put.tells({ cdp: true }));
      expect(open).toMatchObject({ class: 'unknown', strong: ['M2'] });
      const poor = changed(make, drawnBy(null), groups({ worker: null, input: null, time: null }));
      expect(poor.class).not.toBe('undeclared_automation');
      expect(poor.strong).toEqual([]);
    },
  );

  it.each([linuxChrome, linuxFirefox])(
    'on a remote desktop without a graphics chip are unknown at most',
    (make) => {
      for (const drawn of [NO_WEBGL, LLVMPIPE])
        expect(changed(make, NO_POINTER, drawn)).toMatchObject({ class: 'unknown', strong: ['M5'] });
    },
  );

  const kit = 'AppleWebKit/537.36 (KHTML, like Gecko)';
  it.each([
    ['a television', `(SMART-TV; LINUX; Tizen 7.0) ${kit} 94.0.4606.31/7.0 TV Safari/537.36`],
    ['a television of another maker', `(Linux; GoogleTV 5.1) ${kit} Chrome/141.0.0.0 Safari/537.36`],
    ['a set-top box', `(X11; Linux armv7l) ${kit} Chrome/141.0.0.0 Safari/537.36 OperatorBox STB/4.2`],
    ['another set-top box', `(QtEmbedded; U; Linux; C) ${kit} MAG200 stbapp ver: 4 Safari/537.36`],
    ['a console', '(PlayStation; PlayStation 5/6.50) AppleWebKit/605.1.15 Version/15.4 Safari/605.1.15'],
    ['a car', `(X11; GNU/Linux) ${kit} Chrome/141.0.0.0 Safari/537.36 Tesla/2026.8`],
    ['a kiosk', `(X11; Linux x86_64) ${kit} Chrome/141.0.0.0 Safari/537.36 InfoKiosk/3.1`],
    ['a sign', `(X11; Linux aarch64) ${kit} BrightSign/9.0 Chrome/141.0.0.0 Safari/537.36`],
    ['a headset', `(X11; Linux x86_64; Quest 3) ${kit} OculusBrowser/41.0 Chrome/141.0.0.0 VR Safari/537.36`],
  ])(
    'on %s are human, whatever its name hides of the engine, and unknown at most without a card',
    (_name, name) => {
      const userAgent = `Mozilla/5.0 ${name}`;
      const bare = all(named(userAgent, 'Linux armv7l'), NO_POINTER, put.page({ chromeObject: false }));
      const ofTheKind = all(
        bare,
        groups({ worker: null }),
        put.page({ uaData: null }),
        header('sec-ch-ua-platform', undefined),
      );
      for (const engine of ENGINES)
        expect(changed(linuxChrome, ofTheKind, put.engine(engine))).toMatchObject({
          class: 'human',
          strong: [],
        });
      expect(changed(linuxChrome, ofTheKind, put.graphics({ renderer: 'SwiftShader' })).class).not.toBe(
        'undeclared_automation',
      );
    },
  );

  it('with the "desktop site" on a phone are no automation', () => {
    expect(judge(browsers.androidDesktopMode()).class).not.toBe('undeclared_automation');
  });
});

const SAFARI = String(browsers.safari().headers['user-agent']);
const IPHONE = String(browsers.iPhone().headers['user-agent']);

/** "Network conditions" of the tools: the name changes in page, worker and request, the platform does not. */
const renamed = (userAgent: string): Change =>
  all(DEVTOOLS, named(userAgent, 'Win32'), header('sec-ch-ua', undefined), uaData(EMPTIED));
/** An add-on that changes headers alone, as editors of headers do. */
const RENAMED_REQUEST = all(header('user-agent', SAFARI), header('sec-ch-ua-platform', '"macOS"'));
const SECOND_SCREEN = put.screen({ outerWidth: 1990 });

describe('people to protect (signals.md section 2b)', () => {
  it.each<readonly [string, Change]>([
    ['developer tools with the name of Safari for the Mac', renamed(SAFARI)],
    ['developer tools with the name of an iPhone', renamed(IPHONE)],
    ['the same without a worker that could be asked', all(renamed(SAFARI), groups({ worker: null }))],
    ['the same on a virtual machine', all(renamed(SAFARI), SWIFTSHADER)],
    ['undocked developer tools on a virtual machine', all(DEVTOOLS, SWIFTSHADER)],
    ['developer tools on a remote desktop', all(DEVTOOLS, NO_POINTER)],
    ['developer tools on a remote desktop without graphics', all(DEVTOOLS, NO_POINTER, LLVMPIPE)],
    ['developer tools beside a second screen', all(DEVTOOLS, SECOND_SCREEN)],
    ['tools and a worker that lost its brands', all(renamed(SAFARI), put.worker({ uaData: { brands: [] } }))],
    ['a virtual machine named otherwise', all(SWIFTSHADER, put.page({ platform: 'Linux x86_64' }))],
    ['a virtual machine beside a second screen', all(SWIFTSHADER, SECOND_SCREEN)],
    ['a virtual machine behind a proxy', all(SWIFTSHADER, header('sec-ch-ua', undefined))],
    ['a virtual machine that hides the language', all(SWIFTSHADER, header('accept-language', undefined))],
    ['a remote desktop that was made smaller', all(SHRUNK_DESKTOP, NO_POINTER)],
    ['the same without graphics', all(SHRUNK_DESKTOP, NO_POINTER, LLVMPIPE)],
    ['the device toolbar of developer tools', all(DEVTOOLS, DEVICE_TOOLBAR)],
    ['developer tools, and another name in the request', all(DEVTOOLS, RENAMED_REQUEST)],
    ['another name in the request, on a remote desktop', all(RENAMED_REQUEST, NO_POINTER, LLVMPIPE)],
    ['a remote desktop over http', all(NO_POINTER, request({ https: false }))],
    ['a virtual machine that is reached by remote desktop', all(SWIFTSHADER, NO_POINTER)],
    ['developer tools on such a machine', all(SWIFTSHADER, NO_POINTER, DEVTOOLS)],
  ])('%s: unknown', (_name, change) => {
    expect(changed(chrome, change).class).toBe('unknown');
  });
});

const WINDOWS = String(chrome().headers['user-agent']);
const BARE = all(NO_POINTER, LLVMPIPE);

/** An add-on patches the page and the request; the worker and the detailed browser data keep their name. */
const byAddOn = all(
  put.page({ userAgent: WINDOWS, platform: 'Win32' }),
  header('user-agent', WINDOWS),
  patched('userAgent', 'platform'),
);
/** A switch of the browser: the platform keeps its name, and the detailed browser data is emptied. */
const bySwitch = all(named(WINDOWS, 'Linux x86_64'), uaData(EMPTIED));

describe('people whose browser names another system', () => {
  it.each<readonly [string, string, Change]>([
    ['an add-on', 'T1 T4 T8', byAddOn],
    ['an add-on, and developer tools', 'T1 T4 T8', all(byAddOn, DEVTOOLS)],
    ['an add-on, on a remote desktop', 'T1 T4 T8', all(byAddOn, BARE)],
    ['an add-on, and developer tools, on a remote desktop', 'T1 T4 T8', all(byAddOn, DEVTOOLS, BARE)],
    ['an add-on, on a virtual machine', 'T1 T4 T8', all(byAddOn, SWIFTSHADER, NO_POINTER)],
    ['a switch', 'T2 T4 T10', bySwitch],
    ['a switch, and developer tools', 'T2 T4 T10', all(bySwitch, DEVTOOLS)],
    ['a switch, on a remote desktop', 'T2 T4 T10', all(bySwitch, BARE)],
    ['a switch, on a virtual machine', 'T2 T4 T10', all(bySwitch, SWIFTSHADER, NO_POINTER)],
    [
      'a switch, seen by the mouse too',
      'T14 T2 T4 T10',
      all(bySwitch, put.input({ offGrid: false }), DEVTOOLS, BARE),
    ],
  ])('by %s: %s alone, unknown', (_name, strong, change) => {
    expect(changed(linuxChrome, change)).toMatchObject({ class: 'unknown', strong: strong.split(' ') });
  });

  const OTHER_LIST = { fullVersionList: [{ brand: 'Other', version: '1' }] };
  it.each<readonly [string, Change]>([
    ['the emptied data alone, as headless browsers have it', uaData(EMPTIED)],
    ['replaced functions alone', patched('userAgent')],
    ['another name for the worker alone', put.worker({ userAgent: WINDOWS, platform: 'Win32' })],
    ['an oddity that no name explains', all(bySwitch, put.page({ chromeObject: false }))],
    ['lists that name different browsers', all(bySwitch, uaData(OTHER_LIST))],
    ['a debugger on the page alone', all(bySwitch, put.tells({ cdp: true, debugsPageAlone: true }))],
  ])('is automation with neither pointer nor graphics beside %s', (_name, change) => {
    expect(changed(linuxChrome, BARE, change).class).toBe('undeclared_automation');
  });
});

describe('what protects them is no way around the rules', () => {
  const iPhoneLike = all(
    put.media({ pointer: 'coarse', hover: false }),
    put.page({ maxTouchPoints: 5 }),
    sized(390, 844),
  );
  it.each<readonly [string, Change]>([
    ['software graphics in a window that its screen does not hold', all(SWIFTSHADER, OUTGROWN)],
    ['a debugger on the page alone', all(renamed(SAFARI), put.tells({ debugsPageAlone: true }))],
    ["an iPhone's size and touch, and a worker that no phone view leaves", all(renamed(IPHONE), iPhoneLike)],
    ['a page that fills a screen in a window fitted to it', all(DEVTOOLS, OUTGROWN)],
    [
      'no pointer in a window too large for its screen, with a debugger',
      all(SHRUNK_DESKTOP, NO_POINTER, DEVTOOLS, put.tells({ debugsPageAlone: true })),
    ],
  ])('%s is automation', (_name, change) => {
    expect(changed(chrome, change).class).toBe('undeclared_automation');
  });
});

const COARSE = put.media({ pointer: 'coarse' });
const BRANDED = put.worker({ uaData: { brands: [{ brand: 'a', version: '1' }] } });

/** The phone view of developer tools, as the measured matrix shows it. */
describe('developer tools that show a page as an iPhone', () => {
  const phoneView = all(
    DEVTOOLS,
    put.worker({ uaData: { brands: [], platform: 'Windows' } }),
    put.media({ pointer: 'coarse', hover: false }),
    sized(390, 844),
    put.page({ maxTouchPoints: 1 }),
  );
  const asPhone = all(phoneView, named(IPHONE, 'Win32'));
  const staged = put.screen({ outerWidth: 1920, outerHeight: 1080 });
  /** The platform of the phone reaches the page and not its worker; outside that view it is T1. */
  const ofPage = put.page({ platform: 'iPhone' });

  it('are no automation', () => {
    expect(changed(chrome, asPhone).class).toBe('unknown');
    expect(changed(chrome, asPhone, ofPage).class).toBe('unknown');
    expect(changed(chrome, asPhone, ofPage, staged).strong).toContain('T1');
  });

  it('or are docked, on a machine that draws in software, are no automation', () => {
    const docked = put.screen({ innerWidth: 1200, outerWidth: 1920 });
    expect(changed(chrome, DEVTOOLS, docked, SWIFTSHADER)).toMatchObject({
      class: 'unknown',
      strong: ['M2'],
    });
  });

  it('do not excuse a phone that they do not show like that', () => {
    for (const other of [staged, BRANDED])
      expect(changed(chrome, asPhone, other).class).toBe('undeclared_automation');
  });
});

const factsOf = (make: () => Browser, ...changes: readonly Change[]): Facts =>
  changed(make, ...changes).facts;
const FULL = sized(1920, 1080);

describe('a page that is staged', () => {
  it('fills the screen, as its window does', () => {
    expect(isStaged(factsOf(chrome, FULL))).toBe(true);
    expect(isStaged(factsOf(chrome, FULL, groups({ media: null })))).toBe(true);
    for (const side of ['innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'])
      expect(isStaged(factsOf(chrome, FULL, put.screen({ [side]: 700 })))).toBe(false);
  });

  it('is touched, and its window differs, as long as every size is told', () => {
    expect(isStaged(factsOf(chrome, COARSE, FULL))).toBe(false);
    for (const side of ['outerWidth', 'outerHeight'])
      expect(isStaged(factsOf(chrome, COARSE, FULL, put.screen({ [side]: 700 })))).toBe(true);
    const small = put.screen({ outerWidth: 700, outerHeight: 700 });
    for (const side of ['width', 'height', 'innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'])
      expect(isStaged(factsOf(chrome, COARSE, FULL, small, put.screen({ [side]: null })))).toBe(false);
  });
});

describe('a window larger than its screen', () => {
  it.each([
    ['outerWidth', 1952],
    ['outerHeight', 2000],
  ])('by %s alone, fitted to its page, is no one that a person has', (side, size) => {
    const larger = (sizes: object): boolean =>
      windowOutgrowsScreen(factsOf(chrome, FULL, put.screen({ [side]: size, ...sizes })));
    expect([larger({}), larger({ innerWidth: 900 }), larger({ innerHeight: 900 })]).toEqual([
      true,
      false,
      false,
    ]);
    expect(larger({ [side]: side === 'outerWidth' ? 1920 : 1080 })).toBe(false);
    expect(larger({ outerWidth: 1953 })).toBe(false);
  });
});

describe('the phone that a debugger shows', () => {
  const shown = all(DEVTOOLS, FULL, COARSE, put.worker({ uaData: { brands: [] } }));
  const stagedOn = (platform: string, ...changes: readonly Change[]): boolean =>
    isStagedPhone(factsOf(androidChrome, shown, put.page({ platform }), ...changes));

  it('is a phone, touched, with a debugger, and as large as its window', () => {
    expect(isPhoneView(factsOf(androidChrome, shown))).toBe(true);
    for (const without of [
      named('Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0', 'x'),
      put.media({ pointer: 'fine' }),
      all(put.tells({ cdp: false }), put.worker({ cdp: false })),
      put.screen({ outerWidth: 2000 }),
      put.screen({ width: null }),
      BRANDED,
    ])
      expect(isPhoneView(factsOf(androidChrome, shown, without))).toBe(false);
  });

  it('is staged on the processor of a desktop, by a driver that leaves the worker its brands', () => {
    for (const desktop of ['Win32', 'MacIntel iPhone']) expect(stagedOn(desktop, BRANDED)).toBe(true);
    for (const phone of ['Linux armv81', 'Linux aarch64', 'iPhone', 'iPad'])
      expect(stagedOn(phone, BRANDED)).toBe(false);
    expect(stagedOn('Win32')).toBe(false);
    expect(stagedOn('Win32', BRANDED, groups({ worker: null }))).toBe(false);
  });
});
