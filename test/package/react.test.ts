import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { describeInChromium, launchChromium } from '../browser/support/chromium.ts';
import { blocksOf, commandsOf, filesOf, installSdk, readDocs } from '../browser/support/pasted.ts';
import { gpdJson, tempDir } from '../support/command.ts';
import { freePort } from '../support/ports.ts';
import { type Gpd, startGpd } from '../support/server.ts';

/** docs/react.md, pasted: the packages as npm packs them, React from the registry, a real gpd and a real browser. */

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));

function run(cwd: string, program: string, ...words: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(program, words, { cwd, encoding: 'utf8' });
  expect({ status, output: status === 0 ? '' : `${stdout}${stderr}` }).toEqual({ status: 0, output: '' });
}

describeInChromium('the package for React', () => {
  const folder = tempDir('react');
  let gpd: Gpd;
  let shop: ChildProcess;
  let url: string;
  let browser: Browser;

  async function setUp(): Promise<readonly string[]> {
    const dataDir = join(tempDir('react-gpd'), 'gpd-data');
    const command = (words: readonly string[]) =>
      gpdJson<{ key?: string }>(
        words.map((word) => word.replace('http://localhost:3000', url)),
        { env: { GPD_DATA_DIR: dataDir } },
      );
    const keys: string[] = [];
    for (const [, ...words] of commandsOf(blocksOf(readDocs('integrate.md'), 'sh')[0] ?? '')) {
      const { key } = words[0] === 'serve' ? {} : await command(words);
      if (key !== undefined) keys.push(key);
    }
    await command(['consent', 'purposes', 'set', 'shop', 'analytics', '--title', 'Statistics']);
    gpd = await startGpd({ dataDir });
    return keys;
  }

  async function buildShop(publishable: string): Promise<void> {
    writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }');
    for (const name of ['browser', 'react'])
      run(path(`sdk/${name}`), 'npm', 'pack', '--silent', '--pack-destination', folder);
    const packages = ['./gpd-browser-0.1.0.tgz', './gpd-react-0.1.0.tgz', 'react@19', 'react-dom@19'];
    run(folder, 'npm', 'install', '--no-audit', '--no-fund', '--silent', ...packages);
    mkdirSync(join(folder, 'node_modules/@gpd'), { recursive: true });
    await installSdk(folder);
    symlinkSync(path('node_modules/express'), join(folder, 'node_modules/express'));
    const local = (code: string): string =>
      code
        .replace('http://localhost:8080', `http://localhost:${gpd.port}`)
        .replace('gpd_pk_…', publishable)
        .replace('listen(3000', `listen(${new URL(url).port}`);
    for (const [name, code] of filesOf('react.md')) writeFileSync(join(folder, name), local(code));
    const shared = { bundle: true, format: 'esm', jsx: 'automatic', absWorkingDir: folder } as const;
    await build({ ...shared, entryPoints: ['client.jsx'], outfile: 'client.js' });
    const server = { platform: 'node', packages: 'external', outfile: 'server.mjs' } as const;
    await build({ ...shared, ...server, entryPoints: ['server.jsx'] });
  }

  beforeAll(async () => {
    url = `http://localhost:${await freePort()}`;
    const [publishable = '', secret = ''] = await setUp();
    await buildShop(publishable);
    const env = {
      ...process.env,
      GPD_CONSENT_URL: `http://localhost:${gpd.port}`,
      GPD_CONSENT_KEY: secret,
    };
    shop = spawn(process.execPath, ['server.mjs'], {
      cwd: folder,
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    await vi.waitFor(async () => expect((await fetch(url)).status).toBe(200), { timeout: 60_000 });
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    shop?.kill();
    await gpd?.stop();
  });

  /** A new visitor, with all that the console says. */
  async function visit(): Promise<{ page: Page; messages: string[]; rendered: () => Promise<string> }> {
    const context = await browser.newContext();
    const page = await context.newPage();
    const messages: string[] = [];
    page.on('pageerror', (error) => messages.push(error.message));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) messages.push(message.text());
    });
    await page.goto(url);
    return { page, messages, rendered: async () => (await context.request.get(url)).text() };
  }

  it('is denied on the server, follows each choice without a reload, and hydrates in silence', async () => {
    const { page, messages, rendered } = await visit();
    expect(await rendered()).toContain('Not counted.');
    await page.getByRole('button', { name: 'Accept' }).click();
    await page.getByText('You are counted.').waitFor();
    expect(await rendered()).toContain('You are counted.');

    await page.reload();
    await page.getByTestId('look').waitFor();
    await page.getByText('You are counted.').waitFor();
    expect(await page.getByTestId('look').count()).toBe(1);

    await page.getByRole('button', { name: 'Withdraw', exact: true }).first().click();
    await page.getByText('Not counted.').waitFor();
    await expect.poll(rendered).toContain('Not counted.');
    expect(messages).toEqual([]);
    await page.context().close();
  });

  it('opens the settings of the one banner that React started twice', async () => {
    const { page, messages } = await visit();
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    await page.getByRole('checkbox', { name: 'Statistics' }).check();
    await page.getByRole('button', { name: 'Save choices' }).click();
    await page.getByText('You are counted.').waitFor();
    expect(messages).toEqual([]);
    await page.context().close();
  });

  it('throws for a hook outside the provider', () => {
    const code = `import { useConsent } from '@gpd/react'; import { createElement } from 'react';
      import { renderToString } from 'react-dom/server';
      try { renderToString(createElement(() => useConsent().phase)); } catch (error) { console.log(error.message); }`;
    writeFileSync(join(folder, 'outside.mjs'), code);
    const { stdout } = spawnSync(process.execPath, ['outside.mjs'], { cwd: folder, encoding: 'utf8' });
    expect(stdout.trim()).toBe('useConsent must be inside <ConsentProvider>');
  });
});
