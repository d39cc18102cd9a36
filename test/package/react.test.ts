import { type ChildProcess, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeInChromium, launchChromium } from '../browser/support/chromium.ts';
import { type ShopServer, startShopServer } from '../browser/support/pasted.ts';
import { tempDir } from '../support/command.ts';
import { freePort } from '../support/ports.ts';
import { ANALYTICS, buildShop, packSdks, type Visit, visitShop } from './shop.ts';

/** docs/react.md, pasted: the packages as npm packs them, React from the registry, a real gpd and a real browser. */

describeInChromium('the package for React', () => {
  let server: ShopServer;
  let folder: string;
  let shop: ChildProcess;
  let url: string;
  let browser: Browser;

  beforeAll(async () => {
    url = `http://localhost:${await freePort()}`;
    server = await startShopServer(url, ANALYTICS);
    const packs = tempDir('packs');
    packSdks(packs);
    const built = buildShop(url, server, packs, 'react.md');
    folder = built.folder;
    shop = await built.start();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    shop?.kill();
    await server?.gpd.stop();
  });

  const visit = (): Promise<Visit> => visitShop(browser, url);

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

  it('binds the verdict to the order, and sells without one', async () => {
    const { page, messages } = await visit();
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByRole('button', { name: 'Buy' }).click();
    await page.getByText('Thank you.').waitFor();
    await page.context().close();
    const { page: other, messages: otherMessages } = await visit();
    await other.getByRole('button', { name: 'Accept' }).click();
    await other.getByText('You are counted.').waitFor();
    await other.getByRole('button', { name: 'Buy' }).click();
    await other.getByText('Enter the code that we have sent you.').waitFor();
    expect([messages, otherMessages]).toEqual([[], []]);
    await other.context().close();
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

  it('throws for a hook outside the provider, and acts for nobody while a server renders', () => {
    const code = `import { ConsentProvider, useConsent } from '@gpd/react'; import { createElement } from 'react';
      import { renderToString } from 'react-dom/server';
      let consent;
      const Child = () => { consent = useConsent(); return null; };
      try { renderToString(createElement(Child)); } catch (error) { console.log(error.message); }
      const options = { key: 'gpd_pk_x', server: 'https://gpd.example' };
      renderToString(createElement(ConsentProvider, { options }, createElement(Child)));
      const { purposes } = await consent.receipt();
      console.log(JSON.stringify([purposes, await consent.join('gpd_ps_x'), await consent.withdraw()]));`;
    writeFileSync(join(folder, 'outside.mjs'), code);
    const { stdout } = spawnSync(process.execPath, ['outside.mjs'], { cwd: folder, encoding: 'utf8' });
    const [message, answers = ''] = stdout.trim().split('\n');
    expect(message).toBe('useConsent must be inside <ConsentProvider>');
    const nobody = { joined: false, status: 0, error: 'no-browser' };
    expect(JSON.parse(answers)).toEqual([[], nobody, { outcome: 'failed', problem: 'no-browser' }]);
  });
});
