import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { readSignals } from '../../src/schema/signals.ts';
import { GRANTED } from './support/answers.ts';
import { describeInChromium, launchChromium } from './support/chromium.ts';
import { type Site, startSite } from './support/site.ts';

const COLLECT = `import('/v1/agent.js').then((agent) => agent.collect(${JSON.stringify(GRANTED)}))`;

/** Records what a strict page would complain about, from before the first script. */
const WATCH = `window.complaints = [];
addEventListener('securitypolicyviolation', (e) => complaints.push('csp ' + e.violatedDirective + ' ' + e.blockedURI));
addEventListener('error', (e) => complaints.push('error ' + e.message));
addEventListener('unhandledrejection', (e) => complaints.push('rejection ' + e.reason));`;

type Raw = Record<string, Record<string, unknown>>;
const fieldsOf = (group: unknown): unknown =>
  typeof group === 'object' && group !== null ? Object.keys(group).sort() : group;

describeInChromium('browser/collect', () => {
  let site: Site;
  let browser: Browser;
  let page: Page;
  const heard: string[] = [];

  beforeAll(async () => {
    site = await startSite();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });
  beforeEach(async () => {
    page = await browser.newPage();
    heard.length = 0;
    page.on('console', (message) => heard.push(`console.${message.type()} ${message.text()}`));
    page.on('pageerror', (error) => heard.push(`pageerror ${error.message}`));
    page.on('request', (request) => heard.push(`request ${request.url()}`));
    await page.addInitScript(WATCH);
    await page.goto(site.origin);
    return () => page.close();
  });

  it('has every group and field, in types that the server reads', async () => {
    const raw = (await page.evaluate(COLLECT)) as Raw;
    expect(raw['collector']).toBe('1');
    expect(raw['fonts']).toMatch(/^[0-9a-f]{16}$/);
    expect(raw['input']).toBeNull();
    const { signals, malformed } = readSignals(raw);
    expect(malformed).toBe(false);
    for (const [group, fields] of Object.entries(signals))
      expect(fieldsOf(raw[group]), group).toEqual(fieldsOf(fields));
    expect(signals.engine).toMatchObject({ evalLength: 33, errorMessage: expect.stringContaining('null') });
    expect(signals.graphics).toMatchObject({ canvasStable: true, canvasFlatBadPixels: 0, audioStable: true });
    expect(signals.worker?.userAgent).toBe(signals.page?.userAgent);
    expect(signals.time?.clockStepMs).toBeGreaterThan(0);
    expect(signals.tells).toMatchObject({ globals: [], patched: [], notificationMismatch: false });
  });

  it('violates no strict policy, asks no third party and leaves the console clean', async () => {
    await page.evaluate(COLLECT);
    expect(await page.evaluate('complaints')).toEqual([]);
    const strangers = heard.filter(
      (line) => line.startsWith('request ') && !line.includes(` ${site.origin}/`),
    );
    expect(strangers).toEqual([]);
    // The one line that M2 costs, in the page's frame and in the worker, at the level consoles hide.
    const line = 'console.debug Error: gpd looks whether a developer protocol is listening';
    const loud = heard.filter((other) => !other.startsWith('request ') && !other.startsWith(line));
    expect(loud).toEqual([]);
  });

  it('adds no global, leaves no element and puts Error.prepareStackTrace back', async () => {
    const diff = await page.evaluate(`(async () => {
      const marker = () => 'page';
      Error.prepareStackTrace = marker;
      const names = () => Object.getOwnPropertyNames(window);
      const before = new Set(names());
      const html = document.documentElement.outerHTML;
      const agent = await import('/v1/agent.js');
      const imported = names().filter((name) => !before.has(name));
      await agent.collect(${JSON.stringify(GRANTED)});
      return {
        imported,
        collected: names().filter((name) => !before.has(name)),
        sameDocument: html === document.documentElement.outerHTML,
        samePrepare: Error.prepareStackTrace === marker,
      };
    })()`);
    expect(diff).toEqual({ imported: [], collected: [], sameDocument: true, samePrepare: true });
  });

  it('adds itself to window.gpd as a classic script and leaves the rest of it alone', async () => {
    await page.evaluate('window.gpd = { consent: 1 }');
    await page.addScriptTag({ url: '/v1/agent.classic.js' });
    expect(await page.evaluate('Object.keys(gpd).concat(Object.keys(gpd.agent))')).toEqual([
      'consent',
      'agent',
      'identify',
      'update',
      'collect',
      'observeInput',
      'makePlaintext',
      'sealBundle',
    ]);
    const raw = (await page.evaluate(`gpd.agent.collect(${JSON.stringify(GRANTED)})`)) as Raw;
    expect(raw['worker']).not.toBeNull();
  });

  it('counts moves and the last press after observeInput, and nothing else', async () => {
    const stop = `import('/v1/agent.js').then((agent) => {
      window.stop = agent.observeInput(${JSON.stringify(GRANTED)});
    })`;
    await page.evaluate(stop);
    await page.mouse.move(10, 10);
    await page.mouse.move(60, 60, { steps: 5 });
    await page.mouse.down();
    await page.mouse.up();
    const raw = (await page.evaluate(COLLECT)) as Raw;
    // Playwright presses with force, and by times of its own.
    expect(raw['input']).toEqual({
      moves: expect.any(Number),
      downUpMs: expect.any(Number),
      forceless: false,
      offGrid: true,
    });
    expect(raw['input']?.['moves']).toBeGreaterThan(0);
    await page.evaluate('stop()');
    expect(((await page.evaluate(COLLECT)) as Raw)['input']).toBeNull();
  });

  const observe = `agent.observeInput(${JSON.stringify(GRANTED)})`;
  const inputSoFar = async () => ((await page.evaluate(COLLECT)) as Raw)['input'];

  it('does not look at the press that accepts, and sees that a later one had no force', async () => {
    const session = await page.context().newCDPSession(page);
    const press = async (): Promise<void> => {
      for (const type of ['mousePressed', 'mouseReleased'] as const)
        await session.send('Input.dispatchMouseEvent', { type, x: 50, y: 50, button: 'left', clickCount: 1 });
    };
    await page.evaluate(`import('/v1/agent.js').then((agent) => {
      document.documentElement.addEventListener('pointerdown', () => ${observe}, { once: true });
    })`);
    await press();
    expect(await inputSoFar()).toEqual({ moves: 0, downUpMs: null, forceless: null, offGrid: null });
    await press();
    expect(await inputSoFar()).toMatchObject({ forceless: true, downUpMs: expect.any(Number) });
  });

  it('takes no press for one without force that no device made: screen readers press like that', async () => {
    const session = await page.context().newCDPSession(page);
    await page.evaluate(`Object.defineProperty(PointerEvent.prototype, 'persistentDeviceId', { value: 0 })`);
    await page.evaluate(`import('/v1/agent.js').then((agent) => void ${observe})`);
    for (const type of ['mousePressed', 'mouseReleased'] as const)
      await session.send('Input.dispatchMouseEvent', { type, x: 50, y: 50, button: 'left', clickCount: 1 });
    expect(await inputSoFar()).toMatchObject({ forceless: false, downUpMs: expect.any(Number) });
  });

  it('sees what only a driver can set: permissions by the dozen, and a page that counts as used', async () => {
    const session = await page.context().newCDPSession(page);
    // Playwright's own `evaluate` says that somebody pressed something.
    const collect = { expression: COLLECT, awaitPromise: true, returnByValue: true };
    const { value } = (await session.send('Runtime.evaluate', collect)).result as { value: Raw };
    expect(value['tells']).toMatchObject({ granted: 0, barred: 0, activated: false });
    await page.context().grantPermissions(['notifications', 'clipboard-read']);
    const driven = ((await page.evaluate(COLLECT)) as Raw)['tells'];
    expect(driven).toMatchObject({ granted: 2, barred: 4, activated: true });
  });

  /** Long timers run when the test says so, the earliest first. `answer` is what permissions say, `worker` what it tells. */
  const collectAt = (answer: number | null, worker: number | null): Promise<Raw> =>
    page.evaluate(`(async () => {
      const real = window.setTimeout;
      const due = [];
      const later = (ms, run) => void (ms !== null && due.push({ ms, run }));
      window.setTimeout = (run, ms = 0) => (ms < 100 ? real(run, ms) : later(ms, run));
      navigator.permissions.query = () => new Promise((resolve) => later(${answer}, () => resolve({ state: 'denied' })));
      window.Worker = class {
        constructor() { later(${worker}, () => this.onmessage({ data: { platform: 'late' } })); }
        terminate() {}
      };
      const agent = await import('/v1/agent.js');
      const collected = agent.collect(${JSON.stringify(GRANTED)});
      for (const { run } of due.sort((a, b) => a.ms - b.ms)) {
        run();
        await new Promise((resolve) => real(resolve));
      }
      return collected;
    })()`) as Promise<Raw>;

  it('waits for permissions and a worker that a busy machine answers late, and not for ever', async () => {
    const lateSignals = await collectAt(1400, 1900);
    expect(lateSignals['tells']).toMatchObject({ granted: 0, barred: 4 });
    expect(lateSignals['worker']).toEqual({ platform: 'late' });
    await page.goto(site.origin);
    const never = await collectAt(null, null);
    expect(never['tells']).toMatchObject({ notificationMismatch: null, barred: 0 });
    expect(never['worker']).toBeNull();
  });

  it.each([
    ['has a frame', 'document.body.append(document.createElement("iframe"))'],
    [
      'has more resources than the browser remembers',
      'performance.getEntriesByType = () => Array(250).fill({})',
    ],
  ])(
    'does not say that nobody pressed where the page %s: the press may have been there',
    async (_how, script) => {
      await page.evaluate(script);
      expect(((await page.evaluate(COLLECT)) as Raw)['tells']).toMatchObject({ activated: null });
      await page.evaluate('document.querySelector("iframe")?.remove()');
      expect(((await page.evaluate(COLLECT)) as Raw)['tells']).toMatchObject({ activated: null });
    },
  );

  /** The collectors describe a browser that a page script, an extension or a driver has dressed up. */
  async function tellsUnder(script: string): Promise<Record<string, unknown>> {
    await page.addInitScript(script);
    await page.goto(site.origin);
    const raw = (await page.evaluate(COLLECT)) as Raw;
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
