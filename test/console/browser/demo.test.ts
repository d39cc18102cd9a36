import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeInChromium, launchShell } from '../../browser/support/chromium.ts';
import { type Demo, startDemo } from '../../browser/support/demo.ts';

/** `gpd demo` whole: a shop, a customer who contests, an identity provider, and a reviewer who decides. */

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

  it('a visit is contested, and a reviewer overturns it', async () => {
    const shop = await (await browser.newContext()).newPage();
    await shop.goto(demo.shop);
    await shop.getByTestId('consent-accept').click();
    await shop.getByTestId('result-reason').waitFor();
    expect(await shop.locator('[data-part="verdict"]').getAttribute('data-class')).not.toBe('human');
    await shop.getByTestId('contest').click();
    await shop.locator('textarea[name="statement"]').fill('I am trying out this demo.');
    await shop.getByTestId('file').click();
    await shop.getByText('A person will review it by').waitFor();

    const page = await enter('Rosa Reviewer');
    await page.getByRole('button', { name: 'Claim' }).click();
    await page.getByLabel('Overturn it.').check();
    await page
      .getByLabel('Your reason, for the person')
      .fill('You are trying out the demo, and that is human.');
    await page.getByRole('button', { name: 'Resolve the case' }).click();
    await page.getByText('the person can read the outcome').waitFor();

    await shop.getByTestId('check-again').click();
    await shop.locator('[data-part="verdict"][data-class="human"]').waitFor();
    // This browser shares its id with all that draw in software: the date is for the case alone.
    await shop
      .getByText('Devices that look like this one were reviewed. They count as a person’s.')
      .waitFor();
    await shop.getByText('The signs below do not count against you.').waitFor();
    expect(await shop.locator('[data-part="result"]').textContent()).not.toContain('A reviewer confirmed');
    // The score after a review is not what the weights add up to, and says why.
    expect(await shop.locator('[data-field="backend-note"]').textContent()).toMatch(
      /weights add up to \d\.\d\d; the score is 0\.20 because of the review/,
    );
    expect(await shop.locator('[data-part="rules"] li').count()).toBeGreaterThan(0);
    // What a person decided in one's favour is not to be contested.
    expect(await shop.getByTestId('contest').isVisible()).toBe(false);
  });

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
