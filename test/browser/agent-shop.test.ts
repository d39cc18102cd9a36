import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { addApiKey } from '../support/api-key.ts';
import { gpdJson, tempDir } from '../support/command.ts';
import { freePort } from '../support/ports.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { describeInChromium, launchShell } from './support/chromium.ts';
import { installSdk } from './support/pasted.ts';

/**
 * The Express shop in agent-shop/ was integrated after the pages that the prompt of docs/coding-agents.md names.
 * These twenty checks the prompt does not know.
 */

const HERE = new URL('agent-shop/', import.meta.url);
const EXPRESS = fileURLToPath(new URL('../../node_modules/express', import.meta.url));
const GPC_ON = "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true })";
const PURPOSES = ['newsletter', 'offers', 'analytics', 'video'];

describeInChromium('browser/a shop integrated by a coding agent', () => {
  const dataDir = join(tempDir('agent-shop'), 'data');
  let gpd: Gpd;
  let shop: ChildProcess;
  let url: string;
  let gpdUrl: string;
  let secret: string;
  let browser: Browser;
  const command = (...words: string[]) =>
    gpdJson<Record<string, unknown>>(words, { env: { GPD_DATA_DIR: dataDir } });

  beforeAll(async () => {
    const port = await freePort();
    url = `http://localhost:${port}`;
    await command('init', '--tenant', 'shop', '--origin', url);
    for (const id of PURPOSES) await command('consent', 'purposes', 'set', 'shop', id, '--title', id);
    const hook = await command('webhooks', 'add', 'shop', `${url}/hooks`, '--allow-private');
    gpd = await startGpd({ dataDir, settings: { GPD_RATE_CONSENT_NEW: 'off' } });
    gpdUrl = `http://localhost:${gpd.port}`;
    secret = await addApiKey(gpd, 'secret', 'shop');
    const folder = tempDir('shop');
    cpSync(fileURLToPath(HERE), folder, { recursive: true });
    await installSdk(folder);
    symlinkSync(EXPRESS, join(folder, 'node_modules/express'));
    shop = spawn(process.execPath, ['server.mjs'], {
      cwd: folder,
      env: {
        ...process.env,
        ...{ PORT: String(port), GPD_CONSENT_URL: gpdUrl, GPD_CONSENT_KEY: secret },
        GPD_PUBLISHABLE_KEY: await addApiKey(gpd, 'publishable', 'shop'),
        WEBHOOK_SECRET: String(hook['secret']),
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    await vi.waitFor(async () => expect((await fetch(url)).status).toBe(200), { timeout: 60_000 });
    browser = await launchShell();
  });
  afterAll(async () => {
    await browser?.close();
    shop?.kill();
    await gpd?.stop();
  });

  const violations: string[] = [];
  async function visitor(options: BrowserContextOptions = {}, script?: string): Promise<Page> {
    const page = await (await browser.newContext(options)).newPage();
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) violations.push(message.text());
    });
    if (script !== undefined) await page.addInitScript(script);
    await page.goto(url);
    return page;
  }
  const choose = async (page: Page, choice: 'accept' | 'reject'): Promise<void> => {
    await page.getByTestId(`consent-${choice}`).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  };
  const counted = (page: Page) => page.evaluate('window.counted === true');
  const hasOffers = (page: Page) => page.locator('#offers').count();
  const withdraw = (page: Page) => page.evaluate('void gpd.consent.withdraw()');
  const rows = async () =>
    (await (await fetch(`${url}/rows`)).json()) as {
      readonly subscribers: number;
      readonly verdicts: readonly { readonly visitor: string }[];
      readonly orders: number;
    };
  const newsletter = async () => (await fetch(`${url}/newsletter`)).json();
  async function logIn(page: Page, customer: string): Promise<void> {
    await page.locator('input[name=customer]').fill(customer);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText(`Hello ${customer}`).waitFor();
  }

  it('1–4: before a choice nothing runs, under a strict policy, and no secret is in a page', async () => {
    const answer = await fetch(url);
    const policy = answer.headers.get('content-security-policy') ?? '';
    expect(policy).not.toMatch(/unsafe-|\*/);
    for (const source of policy.matchAll(/https?:\S+?(?=[;\s]|$)/g)) expect(source[0]).toBe(gpdUrl);
    expect(answer.headers.get('cache-control')).toBe('private, no-store');
    expect((await answer.text()) + (await (await fetch(`${url}/shop.js`)).text())).not.toContain('gpd_sk_');
    const page = await visitor();
    await page.getByTestId('consent-accept').waitFor();
    expect([await counted(page), await hasOffers(page)]).toEqual([false, 0]);
    expect(await page.locator('iframe[src]').count()).toBe(0);
    await page.context().close();
  });

  it('5–8: a refusal holds, is not asked about again, and the order works without a verdict', async () => {
    const page = await visitor();
    await choose(page, 'reject');
    await page.reload();
    await page.getByRole('button', { name: 'Order' }).click();
    await page.getByText(/Order \d/).waitFor();
    expect([await counted(page), await hasOffers(page)]).toEqual([false, 0]);
    expect(await page.getByTestId('consent-accept').isVisible()).toBe(false);
    expect((await rows()).verdicts).toEqual([]);
    await page.context().close();
  });

  it('9–12: a grant counts for scripts, frames, the server and the order; a withdrawal ends it', async () => {
    const page = await visitor();
    await choose(page, 'accept');
    await expect.poll(() => counted(page)).toBe(true);
    await page.locator('iframe[src]').waitFor();
    await page.reload();
    expect(await hasOffers(page)).toBe(1);
    await page.locator('html[data-visit="whole"]').waitFor({ state: 'attached' });
    await page.getByRole('button', { name: 'Order' }).click();
    await expect.poll(async () => (await rows()).verdicts).toMatchObject([{ visitor: expect.any(String) }]);
    await withdraw(page);
    await expect.poll(() => counted(page).catch(() => true)).toBe(false);
    expect(await hasOffers(page)).toBe(0);
    await page.context().close();
  });

  it('13–14: Global Privacy Control is a no, and a forged cookie is none', async () => {
    const page = await visitor({ extraHTTPHeaders: { 'sec-gpc': '1' } }, GPC_ON);
    await page.locator('html[data-visit]').waitFor({ state: 'attached' });
    expect([await counted(page), await hasOffers(page)]).toEqual([false, 0]);
    expect(await page.getByTestId('consent-accept').isVisible()).toBe(false);
    await page.context().close();
    const cookie = 'gpd_consent=eyJhbGciOiJub25lIn0.eyJwdXJwb3NlcyI6WyJvZmZlcnMiXX0.';
    expect(await (await fetch(url, { headers: { cookie } })).text()).not.toContain('id="offers"');
  });

  it('15–18: a customer has one answer in all browsers and in the newsletter', async () => {
    expect((await fetch(`${url}/gpd-session`, { method: 'POST' })).status).toBe(401);
    // A program presses the buttons here, and no other browser takes over its yes: hers comes from the backend.
    await command('consent', 'grant', 'shop', 'alice', 'newsletter', 'offers');
    const laptop = await visitor();
    const phone = await visitor();
    for (const page of [laptop, phone]) {
      await logIn(page, 'alice');
      await expect.poll(() => page.evaluate('gpd.consent.state().granted.includes("offers")')).toBe(true);
      await page.reload();
      expect(await hasOffers(page)).toBe(1);
    }
    await laptop.evaluate(
      `fetch('/subscribe', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"email":"a@shop.example"}' })`,
    );
    await expect.poll(newsletter).toEqual(['a@shop.example']);
    await withdraw(phone);
    await expect.poll(newsletter).toEqual([]);
    await expect.poll(() => hasOffers(laptop)).toBe(0);
    await Promise.all([laptop.context().close(), phone.context().close()]);
  });

  it('19–20: an erasure deletes the shop’s copies, a forged event does not; without gpd the shop sells', async () => {
    const forged = await fetch(`${url}/hooks`, { method: 'POST', body: '{"type":"subject.erased"}' });
    expect([forged.status, (await rows()).subscribers]).toEqual([400, 1]);
    await command('erase', '--tenant', 'shop', '--principal', 'alice', '--yes');
    await expect.poll(async () => (await rows()).subscribers).toBe(0);
    await gpd.stop();
    const page = await fetch(url, { headers: { cookie: 'customer=alice' } });
    expect([page.status, (await page.text()).includes('id="offers"')]).toEqual([200, false]);
    const order = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
    expect((await fetch(`${url}/order`, order)).status).toBe(201);
    expect(violations).toEqual([]);
  });
});
