import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeInChromium, launchShell } from './support/chromium.ts';
import { type Demo, startDemo } from './support/demo.ts';

/** The tour of `gpd demo` from its first step to its last. SHOTS names a folder for pictures of the page. */

const { SHOTS } = process.env;
const LOOKS = {
  'wide-light': { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  'wide-dark': { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  'phone-light': { viewport: { width: 380, height: 800 }, colorScheme: 'light' },
  'phone-dark': { viewport: { width: 380, height: 800 }, colorScheme: 'dark' },
} as const;

/** Counts the steps that reach the lowest 40 pixels, where the banner's button is, while the page is scrolled through. */
const STEPS_BESIDE_BUTTON = `(() => {
  const found = new Set();
  for (let top = 0; top < document.documentElement.scrollHeight; top += 100) {
    window.scrollTo({ top, behavior: 'instant' });
    const element = document.elementFromPoint(innerWidth - 20, innerHeight - 40);
    if (element?.closest('main')) found.add(element);
  }
  window.scrollTo({ top: 0, behavior: 'instant' });
  return found.size;
})()`;

describeInChromium('the tour', () => {
  let demo: Demo;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  const faults: string[] = [];

  beforeAll(async () => {
    [demo, browser] = await Promise.all([startDemo(), launchShell()]);
    context = await browser.newContext();
    page = await context.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(new URL('/', demo.shop).href);
  });
  afterAll(async () => {
    await browser?.close();
    await demo?.stop();
  });

  async function takeShots(name: string): Promise<void> {
    for (const [look, { viewport, colorScheme }] of Object.entries(SHOTS ? LOOKS : {})) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(SHOTS ?? '', `tour-${name}-${look}.png`), fullPage: true });
    }
  }

  const verdict = (name: string) =>
    page.locator(`[data-part="verdict"][data-class="${name}"]`).waitFor({ state: 'visible' });
  const done = (step: string) => page.locator(`[data-step="${step}"][data-done]`).waitFor();

  /** The link of the step opens the console, signed in, at the case. */
  async function openCase(hook: string, name: string): Promise<Page> {
    const [desk] = await Promise.all([context.waitForEvent('page'), page.getByTestId(hook).click()]);
    await desk.getByRole('link', { name }).waitFor();
    await desk.getByRole('heading', { name: 'Contested decision' }).waitFor();
    return desk;
  }

  it('choose, be a bot, ask, rule, heal, verify, withdraw', async () => {
    await page.getByTestId('consent-accept').waitFor();
    await takeShots('start');
    await page.getByTestId('consent-accept').click();
    await done('choose');
    await done('verdict');

    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate(STEPS_BESIDE_BUTTON)).toBe(0);

    await page.getByTestId('bot').click();
    await done('bot');
    await verdict('undeclared_automation');
    await page.locator('[data-part="rules"] li', { hasText: 'A1 ·' }).waitFor();
    await page.getByTestId('heal').click();
    await page.getByText('It still counts as a bot').waitFor();

    await page.getByTestId('contest').click();
    await page.locator('textarea[name="statement"]').fill('I let a script do my shopping. I am a person.');
    await takeShots('contest');
    await page.getByTestId('file').click();
    await done('contest');
    await page.getByText('A person will review it by').waitFor();

    const rosa = await openCase('as-rosa', 'Rosa Reviewer');
    await rosa.getByRole('button', { name: 'Claim' }).click();
    await rosa.getByLabel('Overturn it.').check();
    await rosa
      .getByLabel('Your reason, for the person')
      .fill('You told us that you drive the browser yourself.');
    await rosa.getByRole('button', { name: 'Propose' }).click();
    await rosa.getByText('Another reviewer').first().waitFor();
    if (SHOTS) await rosa.screenshot({ path: join(SHOTS, 'tour-case-rosa.png'), fullPage: true });
    await page.getByTestId('heal').click();
    await page.getByText('It still counts as a bot').waitFor();

    const remy = await openCase('as-remy', 'Remy Reviewer');
    if (SHOTS) await remy.screenshot({ path: join(SHOTS, 'tour-case-remy.png'), fullPage: true });
    await remy.getByRole('button', { name: /Confirm/ }).click();
    await remy.getByText('the person can read the outcome').waitFor();
    await remy.goto(new URL('/console/overview', demo.shop).href);
    if (SHOTS) await remy.screenshot({ path: join(SHOTS, 'tour-overview.png'), fullPage: true });

    await page.getByTestId('heal').click();
    await done('heal');
    await verdict('human');

    await page.getByTestId('verify').click();
    await done('verify');
    expect(await page.getByTestId('verified').textContent()).toContain('The log is whole');

    await page.getByTestId('check-again').click();
    await page.getByTestId('consent-withdraw').click();
    await done('withdraw');
    await page.getByText('Nothing was sent: you have withdrawn your consent.').waitFor();
    await page.getByTestId('ask-anyway').click();
    await page.getByTestId('result-status').getByText('HTTP 451').waitFor();
    await takeShots('end');
    expect(faults).toEqual([]);
  });
});
