import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { freePort } from '../support/ports.ts';
import { type Gpd, initGpd, startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';
import { launch, missingBrowser, visit } from './support/drivers.ts';

/** The page about what is held, in real Firefox: as it comes, and for a person who blocks cookies. */

describeWithTool('browser/my-data in firefox', missingBrowser('firefox'), () => {
  let gpd: Gpd;
  let base: string;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    const port = await freePort();
    base = `http://localhost:${port}`;
    const { dataDir } = await initGpd([{ kid: KID, origins: [base] }]);
    gpd = await startGpd({ dataDir, args: ['--port', String(port)], settings: { GPD_RATE_PRIVACY: 'off' } });
  });
  afterAll(() => gpd?.stop());
  afterEach(() => browser?.close());

  async function look(preferences: Readonly<Record<string, boolean | number>> = {}): Promise<void> {
    browser = await launch('firefox', preferences);
    page = await (await visit(browser)).tab();
    await page.goto(`${base}/my-data?kid=${KID}`);
    await page.click('[data-testid="look"]');
    await page.waitForSelector('[data-testid="verdict"]');
  }
  const status = (): Promise<string> =>
    page.$eval('[data-testid="status"]', (element) => element.textContent ?? '');
  const decisions = async (): Promise<number> =>
    (await execute(gpd.dataDir, 'SELECT 1 FROM decisions')).length;

  it('shows what is held, and forgets', async () => {
    await look();
    await page.waitForSelector('[data-testid="nothing"]');
    expect(await decisions()).toBe(1);
    await page.click('[data-testid="forget"] summary');
    await page.click('[data-testid="forget-now"]');
    await expect.poll(status, SEEN_WITHIN).toMatch(/^(Forgotten|Only this visit was erased)/);
    expect(await decisions()).toBe(0);
  });

  it('cookies blocked: says so, and claims nothing about what is held', async () => {
    await look({ 'network.cookie.cookieBehavior': 2 });
    await expect.poll(status, SEEN_WITHIN).toMatch(/did not keep the cookie/);
    expect(await page.$('[data-testid="nothing"]')).toBeNull();
    expect(await page.$('[data-testid="forget"]')).toBeNull();
  });
});
