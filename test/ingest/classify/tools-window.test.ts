import { describe, expect, it } from 'vitest';
import { changed, chrome } from './support/browsers.ts';
import { all, type Change, drawnBy, header, named, set } from './support/changes.ts';

/** People with developer tools open, as the measured matrix shows them: never automation. */

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1';

const debuggerOpen: Change = all(
  set('tells', { cdp: true, debugsPageAlone: false }),
  set('worker', { cdp: true }),
);

const phoneView = (width: number, height: number): Change =>
  all(
    debuggerOpen,
    set('worker', { uaData: { brands: [], platform: 'Windows' } }),
    set('media', { pointer: 'coarse', hover: false }),
    set('screen', {
      width,
      height,
      innerWidth: width,
      innerHeight: height,
      outerWidth: width,
      outerHeight: height,
    }),
    set('page', { maxTouchPoints: 1 }),
  );

const docked: Change = set('screen', { innerWidth: 1200, outerWidth: 1920 });

describe('developer tools', () => {
  it('showing a page as an iPhone is no automation', () => {
    const asPhone = all(phoneView(390, 844), named(IPHONE, 'Win32'), header('user-agent', IPHONE));
    expect(changed(chrome, asPhone).class).toBe('unknown');
    // The platform of the phone reaches the page and not its worker; outside that view it is T1.
    const ofPage = set('page', { platform: 'iPhone' });
    expect(changed(chrome, all(asPhone, ofPage)).class).toBe('unknown');
    const staged = all(asPhone, ofPage, set('screen', { outerWidth: 1920, outerHeight: 1080 }));
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
    const staged = all(phoneView(390, 844), set('screen', { outerWidth: 1920, outerHeight: 1080 }));
    const branded = all(
      phoneView(390, 844),
      set('worker', { uaData: { brands: [{ brand: 'a', version: '1' }] } }),
    );
    for (const view of [staged, branded]) {
      const disguised = all(view, named(IPHONE, 'Win32'), header('user-agent', IPHONE));
      expect(changed(chrome, disguised).class).toBe('undeclared_automation');
    }
  });
});
