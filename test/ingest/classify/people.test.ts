import { describe, expect, it } from 'vitest';
import * as browsers from './support/browsers.ts';
import { type Browser, changed, gpu, judge } from './support/browsers.ts';

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
