import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { freePort } from '../support/ports.ts';
import { type Gpd, initGpd, startGpd } from '../support/server.ts';
import { describeInChromium, launchChromium } from './support/chromium.ts';

/** A person at the page that a site links to: over https, with the cookie as it is in production. */

/** Wants consent proven by its ledger. */
const PROVEN = 'proven';

describeInChromium('browser/my-data', () => {
  let gpd: Gpd;
  let base: string;
  let browser: Browser;
  let page: Page;
  const problems: string[] = [];

  beforeAll(async () => {
    const port = await freePort();
    base = `https://localhost:${port}`;
    const { dataDir } = await initGpd([
      { kid: KID, origins: [base] },
      { kid: PROVEN, origins: [base] },
    ]);
    const env = { GPD_DATA_DIR: dataDir };
    expect(await runGpd(['tenants', 'set', PROVEN, 'consent.basis=ledger'], { env })).toMatchObject({
      code: 0,
    });
    const tls = tempDir('tls');
    const made = await runGpd(['tls', 'init', '--out', tls, '--host', 'localhost'], {
      env,
    });
    expect({ code: made.code, stderr: made.stderr }).toMatchObject({ code: 0 });
    gpd = await startGpd({
      dataDir,
      args: ['--port', String(port)],
      settings: {
        GPD_TLS_CERT: join(tls, 'server.crt'),
        GPD_TLS_KEY: join(tls, 'server.key'),
        GPD_BASE_URL: base,
        GPD_RATE_PRIVACY: 'off',
      },
    });
    browser = await launchChromium(['--ignore-certificate-errors']);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await gpd?.stop();
  });
  afterEach(() => page?.context().close());

  async function open(options: BrowserContextOptions = {}): Promise<void> {
    const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
    page = await context.newPage();
    problems.length = 0;
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().includes('404')) problems.push(message.text());
    });
    await page.goto(`${base}/my-data?kid=${KID}`);
  }

  const look = async (): Promise<void> => {
    await page.getByTestId('look').click();
    await page.getByTestId('verdict').waitFor();
  };
  /** Opens what names the loss, and confirms. */
  const forget = async (): Promise<void> => {
    await page.getByTestId('forget').locator('summary').click();
    await page.getByTestId('forget-now').click();
  };
  const rows = async (table: string): Promise<number> =>
    Number((await execute(gpd.dataDir, `SELECT COUNT(*) AS n FROM ${table}`))[0]?.['n']);

  it('asks nothing before the button, then shows the verdict, and that no signal is kept', async () => {
    await open();
    expect(await rows('decisions')).toBe(0);
    await look();
    await page.getByTestId('nothing').waitFor();
    expect(await page.getByTestId('verdict').textContent()).toMatch(/req_[0-9A-Z]{26}/);
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ name: 'gp_session', httpOnly: true, secure: true, sameSite: 'Strict' });
    expect(await rows('decisions')).toBe(1);
    expect(problems).toEqual([]);
  });

  it('forgets this device, and the server holds nothing of it any more', async () => {
    await open();
    await look();
    const request =
      /req_[0-9A-Z]{26}/.exec((await page.getByTestId('verdict').textContent()) ?? '')?.[0] ?? '';
    const left = () =>
      execute(gpd.dataDir, `SELECT 1 FROM decisions WHERE request_id = '${request}'`).then(
        (found) => found.length,
      );
    expect(await left()).toBe(1);
    await forget();
    await expect.poll(() => page.getByTestId('status').textContent()).toMatch(/^Forgotten/);
    expect(await page.getByTestId('receipt').textContent()).toMatch(/^era_/);
    expect(await left()).toBe(0);
    expect(readFileSync(join(gpd.dataDir, 'gpd.db')).includes(request)).toBe(false);
    expect(await page.getByTestId('forget').isVisible()).toBe(false);
    expect(problems).toEqual([]);
  });

  describe('a request about it that fails is told as what it is', () => {
    /** @param status null: without its cookies */
    async function failing(action: 'view' | 'forget', status: number | null): Promise<void> {
      await page.route('**/my-data', async (route) => {
        const request = route.request();
        const isForget = request.postData()?.includes('action=forget') === true;
        if (isForget !== (action === 'forget')) return route.continue();
        if (status === null) {
          const { cookie: _, ...headers } = await request.allHeaders();
          return route.fulfill({ response: await route.fetch({ headers: { ...headers, cookie: '' } }) });
        }
        return route.fulfill({ status, json: { error: 'any' } });
      });
    }
    const status = (): Promise<string | null> => page.getByTestId('status').textContent();

    it('view without the cookie: neither shown nor erasable, and why', async () => {
      await open();
      await failing('view', null);
      await look();
      await expect.poll(status).toMatch(/did not keep the cookie/);
      expect(await page.getByTestId('nothing').count()).toBe(0);
      expect(await page.getByTestId('forget').isVisible()).toBe(false);
    });

    it.each([429, 503])('view with %d: not that nothing is kept', async (code) => {
      await open();
      await failing('view', code);
      await look();
      await expect.poll(status).toMatch(/did not say what else it holds/);
      expect(await page.getByTestId('nothing').count()).toBe(0);
    });

    it('from an address that the site did not register', async () => {
      await open();
      await page.goto(`${base.replace('localhost', '127.0.0.1')}/my-data?kid=${KID}`);
      await look();
      await expect.poll(status).toMatch(/has not registered the address/);
      expect(await page.getByTestId('nothing').count()).toBe(0);
      expect(await page.getByTestId('forget').isVisible()).toBe(false);
    });

    it('forget without the cookie: nothing was erased, and what helps', async () => {
      await open();
      await look();
      const before = await rows('decisions');
      await failing('forget', null);
      await forget();
      await expect.poll(status).toMatch(/^Nothing was erased/);
      expect(await rows('decisions')).toBe(before);
    });

    it.each([429, 503])('forget with %d: can be pressed again', async (code) => {
      await open();
      await look();
      await failing('forget', code);
      await forget();
      await expect.poll(status).toMatch(/did not confirm/);
      await page.unroute('**/my-data');
      await page.getByTestId('forget-now').click();
      await expect.poll(status).toMatch(/^Forgotten/);
    });
  });

  it('is told no more under Global Privacy Control, and nothing is written', async () => {
    const before = await rows('decisions');
    await open();
    await page.addInitScript(
      "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true })",
    );
    await page.reload();
    await page.getByTestId('look').click();
    await expect.poll(() => page.getByTestId('status').textContent()).toMatch(/Global Privacy Control/);
    expect(await rows('decisions')).toBe(before);
  });

  it.each([
    [10, 'Your clock is about 10 minutes fast.'],
    [-3 * 60, 'Your clock is about 3 hours slow.'],
    [60 * 24 * 365, 'Your clock is about 365 days fast.'],
  ])(
    'a clock %d minutes ahead: shows what is held, and says how far the clock is off',
    async (minutes, text) => {
      await open();
      await page.addInitScript(`{ const now = Date.now; Date.now = () => now() + ${minutes * 60_000}; }`);
      await page.reload();
      await look();
      await expect.poll(() => page.getByTestId('status').textContent()).toContain(text);
      await forget();
      await expect.poll(() => page.getByTestId('status').textContent()).toMatch(/^Forgotten/);
      await page.getByTestId('look').click();
      await expect.poll(() => page.getByTestId('status').textContent()).toContain(text);
    },
  );

  it('is told of Global Privacy Control that came as a header alone', async () => {
    const before = await rows('decisions');
    await open({ extraHTTPHeaders: { 'sec-gpc': '1' } });
    await page.getByTestId('look').click();
    await expect.poll(() => page.getByTestId('status').textContent()).toMatch(/Global Privacy Control/);
    expect(await rows('decisions')).toBe(before);
  });

  it('is told that the site takes a recorded consent alone', async () => {
    await open();
    await page.goto(`${base}/my-data?kid=${PROVEN}`);
    await page.getByTestId('look').click();
    await expect.poll(() => page.getByTestId('status').textContent()).toMatch(/recorded consent/);
  });

  it('shows what tells the device apart where the tenant keeps summaries', async () => {
    await gpd.json(['tenants', 'set', KID, 'transparency.retain=summary']);
    await open({ colorScheme: 'dark', viewport: { width: 320, height: 700 } });
    await vi.waitFor(async () => {
      await look();
      expect(await page.getByTestId('view').count()).toBe(1);
    }, SEEN_WITHIN);
    const text = (await page.getByTestId('view').textContent()) ?? '';
    expect(text).toMatch(/Graphics chip|Installed fonts|Processor cores/);
    expect(text).toMatch(/not enough data/);
    expect(text).toMatch(/some: uncommon/);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
    expect(problems).toEqual([]);
    if (process.env['SHOTS'])
      await page.screenshot({ path: join(process.env['SHOTS'], 'my-data-dark-320.png'), fullPage: true });
  });

  it('says so without JavaScript, and 404 for no tenant', async () => {
    await open({ javaScriptEnabled: false });
    expect(await page.textContent('main')).toContain('needs JavaScript');
    const answer = await page.goto(`${base}/my-data?kid=nobody`);
    expect(answer?.status()).toBe(404);
    expect(await page.textContent('main')).toContain('No site here has that name');
    // Two tenants are at this address.
    const missing = await page.goto(`${base}/my-data`);
    expect(missing?.status()).toBe(200);
    expect(await page.locator('main a').allTextContents()).toEqual([KID, PROVEN]);
    const nowhere = await page.goto(`${base}/nowhere`);
    expect(nowhere?.status()).toBe(404);
    expect(await page.textContent('h1')).toBe('Page not found');
  });

  it('axe finds nothing, before, with all that is held, and after a forget', async () => {
    const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    await open({ viewport: { width: 390, height: 844 } });
    const violations = async (): Promise<string[]> => {
      await page.evaluate(axe);
      const found = (await page.evaluate('axe.run()')) as AxeResults;
      expect(found.passes.length).toBeGreaterThan(5);
      return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
    };
    expect(await violations()).toEqual([]);
    await look();
    await page.getByTestId('forget').locator('summary').click();
    expect(await violations()).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await page.getByTestId('forget-now').click();
    await page.getByTestId('forgotten').waitFor();
    expect(await violations()).toEqual([]);
    if (process.env['SHOTS'])
      await page.screenshot({
        path: join(process.env['SHOTS'], 'my-data-forgotten-390.png'),
        fullPage: true,
      });
  });

  it('files a contest in one’s own words, and shows its key', async () => {
    await open({ viewport: { width: 390, height: 844 } });
    await look();
    await page.getByTestId('contest').locator('summary').click();
    await page.getByTestId('file').click();
    // The browser itself asks for the words.
    expect(await page.getByTestId('filed').count()).toBe(0);
    await page.locator('textarea[name="statement"]').fill('I am a person with a driven browser.');
    await page.getByTestId('file').click();
    const key = await page.getByTestId('case-key').textContent();
    expect(key).toMatch(/^([0-9A-Z]{5}-){5}[0-9A-Z]$/);
    expect(await page.getByTestId('case-link').getAttribute('href')).toBe(`${base}/case#${key}`);
    await expect.poll(() => page.getByTestId('status').textContent()).toBe('Your contest was filed.');
    if (process.env['SHOTS'])
      await page.screenshot({ path: join(process.env['SHOTS'], 'my-data-filed-390.png'), fullPage: true });
    expect(problems).toEqual([]);
  });

  it('saves what is held as a page, which opens by itself', async () => {
    await open();
    await look();
    const saved = page.waitForEvent('download');
    await page.getByTestId('save-page').click();
    const path = await (await saved).path();
    const html = readFileSync(path, 'utf8');
    expect(html).toContain('What this site’s device check holds about you');
    expect(html).toMatch(/req_[0-9A-Z]{26}/);
    await page.getByTestId('forget').waitFor();
    expect(problems).toEqual([]);
  });

  it('looks right in the light', async () => {
    await open({ viewport: { width: 1280, height: 900 } });
    await look();
    await page.getByTestId('forget').waitFor();
    if (process.env['SHOTS'])
      await page.screenshot({ path: join(process.env['SHOTS'], 'my-data-light.png'), fullPage: true });
    expect(await page.title()).toContain('holds about you');
  });
});
