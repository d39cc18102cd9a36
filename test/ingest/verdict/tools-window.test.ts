import { describe, expect, it } from 'vitest';
import type { Facts } from '../../../src/ingest/verdict/facts.ts';
import {
  isPhoneView,
  isStaged,
  isStagedPhone,
  windowOutgrowsScreen,
} from '../../../src/ingest/verdict/rule.ts';
import { androidChrome, type Browser, changed, chrome } from './support/browsers.ts';
import { all, type Change, drawnBy, groups, header, named, setFields } from './support/changes.ts';

/** People with developer tools open, as the measured matrix shows them: never automation. */

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1';

const debuggerOpen: Change = all(
  setFields('tells', { cdp: true, debugsPageAlone: false }),
  setFields('worker', { cdp: true }),
);

const phoneView = (width: number, height: number): Change =>
  all(
    debuggerOpen,
    setFields('worker', { uaData: { brands: [], platform: 'Windows' } }),
    setFields('media', { pointer: 'coarse', hover: false }),
    setFields('screen', {
      width,
      height,
      innerWidth: width,
      innerHeight: height,
      outerWidth: width,
      outerHeight: height,
    }),
    setFields('page', { maxTouchPoints: 1 }),
  );

const docked: Change = setFields('screen', { innerWidth: 1200, outerWidth: 1920 });

describe('developer tools', () => {
  it('showing a page as an iPhone is no automation', () => {
    const asPhone = all(phoneView(390, 844), named(IPHONE, 'Win32'), header('user-agent', IPHONE));
    expect(changed(chrome, asPhone).class).toBe('unknown');
    // The platform of the phone reaches the page and not its worker; outside that view it is T1.
    const ofPage = setFields('page', { platform: 'iPhone' });
    expect(changed(chrome, all(asPhone, ofPage)).class).toBe('unknown');
    const staged = all(asPhone, ofPage, setFields('screen', { outerWidth: 1920, outerHeight: 1080 }));
    expect(changed(chrome, staged).strong).toContain('T1');
  });

  it('docked or not, on a machine that draws in software, are no automation', () => {
    const software = drawnBy(
      'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)',
    );
    expect(changed(chrome, all(debuggerOpen, docked, software))).toMatchObject({
      class: 'unknown',
      strong: ['M2'],
    });
    expect(changed(chrome, all(debuggerOpen, software)).class).toBe('unknown');
  });

  it('do not excuse a phone that they do not show like that', () => {
    const staged = all(phoneView(390, 844), setFields('screen', { outerWidth: 1920, outerHeight: 1080 }));
    const branded = all(
      phoneView(390, 844),
      setFields('worker', { uaData: { brands: [{ brand: 'a', version: '1' }] } }),
    );
    for (const view of [staged, branded]) {
      const disguised = all(view, named(IPHONE, 'Win32'), header('user-agent', IPHONE));
      expect(changed(chrome, disguised).class).toBe('undeclared_automation');
    }
  });
});

const SIZES = {
  width: 1920,
  height: 1080,
  innerWidth: 1920,
  innerHeight: 1080,
  outerWidth: 1920,
  outerHeight: 1080,
};
const sized = (sizes: Partial<Record<keyof typeof SIZES, number | null>>): Change =>
  setFields('screen', { ...SIZES, ...sizes });
const coarse = setFields('media', { pointer: 'coarse' });
const factsOf = (make: () => Browser, ...changes: readonly Change[]): Facts =>
  changed(make, all(...changes)).facts;

describe('a page that is staged', () => {
  it('fills the screen, as its window does', () => {
    expect(isStaged(factsOf(chrome, sized({})))).toBe(true);
    expect(isStaged(factsOf(chrome, sized({}), groups({ media: null })))).toBe(true);
  });

  it.each(['innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'] as const)(
    'not where %s differs',
    (name) => {
      expect(isStaged(factsOf(chrome, sized({ [name]: 700 })))).toBe(false);
    },
  );

  it.each(['outerWidth', 'outerHeight'] as const)('is touched, and %s of its window differs', (name) => {
    expect(isStaged(factsOf(chrome, coarse, sized({ [name]: 700 })))).toBe(true);
    expect(isStaged(factsOf(chrome, coarse, sized({})))).toBe(false);
  });

  it.each(Object.keys(SIZES))('is none where %s is not told', (name) => {
    // Its window does not fill the screen, which tells one that is touched.
    const touched = all(
      coarse,
      sized({ outerWidth: 700, outerHeight: 700 }),
      setFields('screen', { [name]: null }),
    );
    expect(isStaged(factsOf(chrome, touched))).toBe(false);
  });
});

describe('a window larger than its screen', () => {
  it.each(['outerWidth', 'outerHeight'] as const)('by %s alone, is no one that a person has', (name) => {
    expect(windowOutgrowsScreen(factsOf(chrome, sized({ [name]: 2000 })))).toBe(true);
    expect(windowOutgrowsScreen(factsOf(chrome, sized({ [name]: 2000, innerWidth: 900 })))).toBe(false);
    expect(windowOutgrowsScreen(factsOf(chrome, sized({ [name]: 2000, innerHeight: 900 })))).toBe(false);
  });

  it('is not one of the same size', () => {
    expect(windowOutgrowsScreen(factsOf(chrome, sized({})))).toBe(false);
  });
});

describe('the phone that a debugger shows', () => {
  const shown = all(debuggerOpen, sized({}), coarse, setFields('worker', { uaData: { brands: [] } }));
  const branded = setFields('worker', { uaData: { brands: [{ brand: 'a', version: '1' }] } });
  const ofDesktop = setFields('page', { platform: 'Win32' });

  it('is a phone, touched, with a debugger, and as large as its window', () => {
    expect(isPhoneView(factsOf(androidChrome, shown))).toBe(true);
    for (const without of [
      named('Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0', 'x'),
      setFields('media', { pointer: 'fine' }),
      all(setFields('tells', { cdp: false }), setFields('worker', { cdp: false })),
      sized({ outerWidth: 2000 }),
      sized({ width: null }),
      branded,
    ])
      expect(isPhoneView(factsOf(androidChrome, shown, without))).toBe(false);
  });

  it('is staged on the processor of a desktop, by a driver that leaves the worker its brands', () => {
    expect(isStagedPhone(factsOf(androidChrome, shown, branded, ofDesktop))).toBe(true);
    expect(isStagedPhone(factsOf(androidChrome, shown, ofDesktop))).toBe(false);
    expect(isStagedPhone(factsOf(androidChrome, shown, branded, ofDesktop, groups({ worker: null })))).toBe(
      false,
    );
  });

  it.each(['Linux armv81', 'Linux aarch64', 'iPhone', 'iPad'])(
    'is none on %s, which is a phone',
    (platform) => {
      const phone = setFields('page', { platform });
      expect(isStagedPhone(factsOf(androidChrome, shown, branded, phone))).toBe(false);
    },
  );

  it('is staged whatever follows the name of a desktop', () => {
    const odd = setFields('page', { platform: 'MacIntel iPhone' });
    expect(isStagedPhone(factsOf(androidChrome, shown, branded, odd))).toBe(true);
  });
});
