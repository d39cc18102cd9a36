import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, it } from 'vitest';
import { describeInChromium, launchShell } from '../../browser/support/chromium.ts';
import { type Demo, startDemo } from '../../browser/support/demo.ts';

/** Signs in to the console of `gpd demo` with its identity provider. */

describeInChromium('the console of the demo', () => {
  let demo: Demo;
  let browser: Browser;

  beforeAll(async () => {
    [demo, browser] = await Promise.all([startDemo(), launchShell()]);
  });
  afterAll(async () => {
    await browser?.close();
    await demo?.stop();
  });

  const base = (): string => new URL(demo.shop).origin;

  async function enter(name: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${base()}/console`);
    await page.getByRole('button', { name }).click();
    return page;
  }

  it('Sam is not let in, and in the same browser Rosa is, and then Remy', async () => {
    const page = await enter('Sam Shopper');
    await page.getByText('You have no role here').waitFor();
    await page.getByRole('link', { name: 'Sign in again' }).click();
    await page.getByRole('button', { name: 'Rosa Reviewer' }).click();
    await page.getByRole('link', { name: 'Rosa Reviewer' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign out at the identity provider' }).click();
    await page.getByRole('heading', { name: 'Sign out?' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await page.getByRole('link', { name: 'Sign in again' }).click();
    await page.getByRole('button', { name: 'Remy Reviewer' }).click();
    await page.getByRole('link', { name: 'Remy Reviewer' }).waitFor();
  });
});
