import type { ChildProcess } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { freePort } from '../support/ports.ts';
import type { Gpd } from '../support/server.ts';
import { describeInChromium, launchChromium } from './support/chromium.ts';
import { filesOf, installSdk, startShop, startShopServer } from './support/pasted.ts';

/** docs/checkout.md, pasted: nobody is refused, whatever gpd says or does not say. */

const EXPRESS = fileURLToPath(new URL('../../node_modules/express', import.meta.url));

describeInChromium('browser/docs/checkout.md', () => {
  let gpd: Gpd;
  let shop: ChildProcess;
  let url: string;
  let browser: Browser;

  beforeAll(async () => {
    url = `http://localhost:${await freePort()}`;
    const server = await startShopServer(url);
    gpd = server.gpd;
    const cwd = tempDir('checkout-shop');
    await installSdk(cwd);
    symlinkSync(EXPRESS, join(cwd, 'node_modules/express'));
    server.write(cwd, filesOf('checkout.md'));
    shop = await startShop(url, cwd, server.environment);
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    shop?.kill();
    await gpd?.stop();
  });

  async function visit(choice: 'Accept' | 'Reject' | null): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    await page.goto(url);
    if (choice !== null) {
      await page.getByRole('button', { name: choice }).click();
      await page.getByRole('button', { name: choice }).waitFor({ state: 'hidden' });
    }
    return page;
  }
  const buy = (page: Page): Promise<void> => page.getByRole('button', { name: 'Buy' }).click();

  it('a driven browser is asked for a second factor, and not refused', async () => {
    const page = await visit('Accept');
    await buy(page);
    await page.getByText('Enter the code that we have sent you.').waitFor();
  });

  it('the verdict of another order is none, and a basket is sold once', async () => {
    const page = await visit('Accept');
    const request = page.waitForRequest(`${url}/buy`);
    await buy(page);
    await page.getByText('Enter the code that we have sent you.').waitFor();
    const { order, requestId } = (await request).postDataJSON() as Record<string, string>;
    expect(requestId).toMatch(/^req_/);
    await page.reload();
    const other = await page.getByRole('button', { name: 'Buy' }).getAttribute('data-order');
    expect(other).not.toBe(order);
    const post = async (data: object) => (await page.request.post(`${url}/buy`, { data })).text();
    expect(await post({ order, requestId })).toBe('Enter the code that we have sent you.');
    expect(await post({ order: other, requestId })).toBe('Thank you. We will look at this order.');
    expect(await post({ order: other, requestId })).toBe('This order is not open.');
  });

  it.each(['Reject', null] as const)('the sale goes on without a verdict: %s', async (choice) => {
    const page = await visit(choice);
    await buy(page);
    await page.getByText('Thank you. We will look at this order.').waitFor();
  });

  it('the sale goes on while gpd takes connections and never answers', async () => {
    const page = await (await browser.newContext()).newPage();
    await page.route(`http://localhost:${gpd.port}/**`, () => {});
    await page.goto(url, { waitUntil: 'commit' });
    await buy(page);
    await page.getByText('Thank you. We will look at this order.').waitFor({ timeout: 60_000 });
  });

  it('the sale goes on when gpd has gone', async () => {
    const page = await visit('Accept');
    await gpd.stop();
    await buy(page);
    await page.getByText('Thank you. We will look at this order.').waitFor();
  });
});
