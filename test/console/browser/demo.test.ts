import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
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

  it('the overview shows a real shop: what is overdue, visits of each range, consent and rulings', async () => {
    const page = await enter('Rosa Reviewer');
    for (const range of ['24h', '90d']) {
      await page.goto(`${base()}/console/overview?range=${range}`);
      await page.getByRole('heading', { level: 1, name: /^\d objections are overdue$/ }).waitFor();
      const shown = await page.locator('b[data-n]').allTextContents();
      expect(shown.every((text) => Number(text.replaceAll(',', '')) >= 50)).toBe(true);
      expect(await page.locator('.chart rect').count()).toBeGreaterThan(50);
      await page.getByText(/\d % (?:more|fewer) visits than in /).waitFor();
    }
    await page
      .getByText(/^[1-9] of [1-9]$/)
      .first()
      .waitFor();
    await page.getByRole('link', { name: 'Decisions', exact: true }).click();
    expect(await page.locator('[data-row]').count()).toBe(25);
  });
});
