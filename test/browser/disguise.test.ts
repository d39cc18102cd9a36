import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readSignals } from '../../src/schema/signals.ts';
import { GRANTED } from './support/answers.ts';
import { describeInChromium, launchChromium } from './support/chromium.ts';
import { type Site, startSite } from './support/site.ts';

const COLLECT = `import('/v1/agent.js').then((agent) => agent.collect(${JSON.stringify(GRANTED)}))`;

type Raw = Record<string, Record<string, unknown>>;

/** The collectors describe a browser that a page script, an extension or a driver has dressed up. */
describeInChromium('browser/disguise', () => {
  let site: Site;
  let browser: Browser;

  beforeAll(async () => {
    site = await startSite();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  async function tellsUnder(script: string): Promise<Record<string, unknown>> {
    const page = await browser.newPage();
    await page.addInitScript(script);
    await page.goto(site.origin);
    const raw = (await page.evaluate(COLLECT)) as Raw;
    await page.close();
    expect(readSignals(raw).malformed).toBe(false);
    return { ...raw['tells'], preattached: raw['frame']?.['srcdocPreattached'], page: raw['page'] };
  }

  it.each([
    [
      'a plain getter',
      "Object.defineProperty(Navigator.prototype, 'webdriver', { get: () => false })",
      'webdriver',
    ],
    ['an own property', "Object.defineProperty(navigator, 'platform', { get: () => 'Win32' })", 'platform'],
    [
      'a proxied getter',
      `const d = Object.getOwnPropertyDescriptor(Navigator.prototype, 'languages');
       Object.defineProperty(Navigator.prototype, 'languages', { ...d, get: new Proxy(d.get, { apply: () => ['x'] }) })`,
      'languages',
    ],
    [
      'toString itself',
      `const was = Function.prototype.toString;
       Function.prototype.toString = new Proxy(was, { apply: (f, t, a) => Reflect.apply(f, t, a) })`,
      'Function.toString',
    ],
    [
      'canvas read-out',
      `const was = CanvasRenderingContext2D.prototype.getImageData;
       CanvasRenderingContext2D.prototype.getImageData = function (...args) { return was.apply(this, args) }`,
      'canvas',
    ],
    ['screen', "Object.defineProperty(Screen.prototype, 'width', { get: () => 1920 })", 'screen'],
  ])('names %s as patched', async (_what, script, name) => {
    expect((await tellsUnder(script))['patched']).toContain(name);
  });

  it('takes wrappers that ordinary pages use for what they are', async () => {
    const script = `const was = HTMLCanvasElement.prototype.getContext;
      HTMLCanvasElement.prototype.getContext = function (...args) { return was.apply(this, args) };
      const log = console.debug;
      console.debug = (...args) => { args.map((a) => a.stack); return log.apply(console, args) };
      window.phantom = {}; window.emit = () => {}; window.spawn = () => {};`;
    expect(await tellsUnder(script)).toMatchObject({ patched: [], globals: [] });
  });

  it('finds the globals of automation', async () => {
    const script = `window.cdc_adoQpoasnfa76pfcZLmcfl_Array = Array; document.$cdc_x = 1; window.__playwright__binding__ = 1;
      Object.defineProperty(window, '__webdriver_evaluate', { value: 1, enumerable: false });
      window.domAutomationController = {}; window.callPhantom = () => {}; window.__nightmare = {};`;
    const { globals } = await tellsUnder(script);
    expect(new Set(globals as string[])).toEqual(
      new Set([
        'cdc_adoQpoasnfa76pfcZLmcfl_Array',
        '$cdc_x',
        '__playwright__binding__',
        '__webdriver_evaluate',
        'domAutomationController',
        'callPhantom',
        '__nightmare',
      ]),
    );
  });

  it('sees a contentWindow that is there too early', async () => {
    const script = `const was = document.createElement.bind(document);
      document.createElement = (name, ...rest) => {
        const element = was(name, ...rest);
        if (name === 'iframe') Object.defineProperty(element, 'contentWindow', { get: () => window });
        return element;
      };`;
    expect((await tellsUnder(script))['preattached']).toBe(true);
  });

  it('gives null for a field that throws, and keeps the others', async () => {
    const script = `for (const name of ['vendor', 'userAgentData', 'plugins']) {
        Object.defineProperty(Navigator.prototype, name, { get() { throw new Error('no') } });
      }
      delete window.OfflineAudioContext; delete window.Notification; window.matchMedia = undefined;`;
    const { page } = (await tellsUnder(script)) as { page: Record<string, unknown> };
    expect(page).toMatchObject({ vendor: null, uaData: null, pluginCount: null, cookies: true });
  });
});
