import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { gpdJson, tempDir } from '../support/command.ts';
import { freePort } from '../support/ports.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { describeInChromium, launchChromium } from './support/chromium.ts';
import { blocksOf, commandsOf, installSdk, readDocs } from './support/pasted.ts';

/** docs/integrate.md, its ten minutes taken from the page word by word: what it shows has to run. */

const [, walk = ''] = /^## Ten minutes[^\n]*\n([\s\S]*?)^## /m.exec(readDocs('integrate.md')) ?? [];
const blocks = (language: string): string[] => blocksOf(walk, language);

describeInChromium('browser/docs/integrate.md', () => {
  let gpd: Gpd;
  let browser: Browser;
  let shop: string;
  let backend: ReturnType<typeof spawn>;

  beforeAll(async () => {
    const dataDir = join(tempDir('integrate'), 'gpd-data');
    const port = await freePort();
    shop = `http://localhost:${port}`;
    const put = (command: readonly string[]): string[] =>
      command.slice(1).map((word) => word.replace('http://localhost:3000', shop));
    const [setUp = '', requests = ''] = blocks('sh');
    const keys: string[] = [];
    for (const command of [...commandsOf(setUp), ...commandsOf(requests)]) {
      expect(command[0]).toBe('gpd');
      if (command[1] === 'serve') continue;
      const printed = await gpdJson<{ key?: string }>(put(command), { env: { GPD_DATA_DIR: dataDir } });
      if (printed.key !== undefined) keys.push(printed.key);
    }
    const [publishable = '', secret = ''] = keys;
    gpd = await startGpd({ dataDir });
    const url = `http://localhost:${gpd.port}`;
    const cwd = tempDir('backend');
    const local = (code: string): string => code.replaceAll('http://localhost:8080', url);
    writeFileSync(join(cwd, 'index.html'), local(blocks('html')[0] ?? '').replace('gpd_pk_…', publishable));
    writeFileSync(join(cwd, 'server.mjs'), local(blocks('js')[0] ?? '').replace('3000', String(port)));
    await installSdk(cwd);
    backend = spawn(process.execPath, ['server.mjs'], {
      cwd,
      env: { ...process.env, GPD_CONSENT_URL: url, GPD_CONSENT_KEY: secret },
    });
    await vi.waitFor(async () => expect((await fetch(shop)).status).toBe(200), { timeout: 10_000 });
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    backend?.kill();
    await gpd?.stop();
  });

  it('shows what it says it shows', async () => {
    const page = await browser.newPage();
    await page.goto(shop);
    const answer = async () =>
      JSON.parse((await page.locator('pre').textContent()) ?? '') as Record<string, never>;
    await page.getByText('We recognise this device to keep others out of your account.').waitFor();
    expect(await page.getByRole('link', { name: 'Privacy policy' }).getAttribute('href')).toBe(
      'https://shop.example/privacy',
    );
    const worker = page.waitForResponse('**/agent-worker.js');
    await page.getByRole('button', { name: 'Accept' }).click();
    expect((await worker).headers()['content-type']).toBe('text/javascript');
    await page.getByText('"allowed": true').waitFor();
    expect(await answer()).toMatchObject({
      consent: { allowed: true, reason: 'granted', proof: { seq: expect.any(Number) } },
      verdict: { reason: 'ok', rules: expect.any(Array) },
    });

    await page.getByRole('button', { name: 'Privacy choices' }).click();
    await page.getByRole('checkbox', { name: 'Recognising your device' }).uncheck();
    await page.getByRole('button', { name: 'Save choices' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.reload();
    await page.getByText('"reason": "withdrawn"').waitFor();
    expect(await answer()).toMatchObject({ consent: { allowed: false, reason: 'withdrawn' }, verdict: null });
    expect(await gpd.json(['consent', 'verify', 'shop'])).toMatchObject({ ok: true });
  });
});
