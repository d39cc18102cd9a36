import { type ChildProcess, spawn } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { gpdJson, tempDir } from '../support/command.ts';
import { freePort } from '../support/ports.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { describeInChromium, launchChromium } from './support/chromium.ts';
import { blocksOf, commandsOf, filesOf, installSdk, readDocs } from './support/pasted.ts';

/** docs/checkout.md, pasted: nobody is refused, whatever gpd says or does not say. */

const EXPRESS = fileURLToPath(new URL('../../node_modules/express', import.meta.url));

describeInChromium('browser/docs/checkout.md', () => {
  let gpd: Gpd;
  let shop: ChildProcess;
  let url: string;
  let browser: Browser;

  beforeAll(async () => {
    const dataDir = join(tempDir('checkout'), 'gpd-data');
    url = `http://localhost:${await freePort()}`;
    const keys: string[] = [];
    for (const [, ...words] of commandsOf(blocksOf(readDocs('integrate.md'), 'sh')[0] ?? '')) {
      if (words[0] === 'serve') continue;
      const local = words.map((word) => word.replace('http://localhost:3000', url));
      const { key } = await gpdJson<{ key?: string }>(local, { env: { GPD_DATA_DIR: dataDir } });
      if (key !== undefined) keys.push(key);
    }
    const [publishable = '', secret = ''] = keys;
    gpd = await startGpd({ dataDir });
    const gpdUrl = `http://localhost:${gpd.port}`;
    const cwd = tempDir('checkout-shop');
    await installSdk(cwd);
    symlinkSync(EXPRESS, join(cwd, 'node_modules/express'));
    for (const [name, code] of filesOf('checkout.md'))
      writeFileSync(
        join(cwd, name),
        code
          .replaceAll('http://localhost:8080', gpdUrl)
          .replace('gpd_pk_…', publishable)
          .replace('listen(3000', `listen(${new URL(url).port}`),
      );
    const env = { ...process.env, GPD_CONSENT_URL: gpdUrl, GPD_CONSENT_KEY: secret };
    shop = spawn(process.execPath, ['server.mjs'], { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] });
    await vi.waitFor(async () => expect((await fetch(url)).status).toBe(200), { timeout: 60_000 });
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

  it('the sale goes on when gpd has gone', async () => {
    const page = await visit('Accept');
    await gpd.stop();
    await buy(page);
    await page.getByText('Thank you. We will look at this order.').waitFor();
  });
});
