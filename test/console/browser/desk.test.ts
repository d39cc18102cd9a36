import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { DAY } from '../../../src/lib/clock.ts';
import { describeInChromium } from '../../browser/support/chromium.ts';
import { REASON } from '../../support/constants.ts';
import { useBrowserConsole } from '../support/browser.ts';
import { change } from '../support/data.ts';

/** The case desk in a browser: its tabs, its keys, its columns, and its errors on a phone. */

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const LONG = `${'I use a switch, and my computer fills in the rest. '.repeat(70)}`.trim();

describeInChromium('the case desk', () => {
  const at = useBrowserConsole();

  const open = async (page: Page, contestId: string) => {
    await page.goto(`${at.site.url}/console/contests/${contestId}`);
    await page.waitForLoadState('load');
  };
  const focused = (page: Page) => page.evaluate(() => document.activeElement?.id ?? '');

  it('from the content, Tab reaches the ruling at once, however much is known of the device', async () => {
    const device = 'busy';
    const { contestId } = await at.createCase(device);
    for (let i = 0; i < 8; i += 1) await at.createCase(device);
    const page = await at.enter('ada');
    await open(page, contestId);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const stops: string[] = [];
    while (stops.at(-1) !== 'reason' && stops.length < 40) {
      await page.keyboard.press('Tab');
      stops.push(await focused(page));
    }
    expect(stops).toContain('tab-decide');
    expect(stops.indexOf('outcome-overturned')).toBe(stops.indexOf('tab-decide') + 1);
    expect(stops.length).toBeLessThanOrEqual(16);
    // The arrows walk through the tabs, of which one is shown.
    await page.locator('#tab-decide').focus();
    await page.keyboard.press('ArrowRight');
    expect([await page.locator('#question').isVisible(), await page.locator('#reason').isVisible()]).toEqual([
      true,
      false,
    ]);
    await page.context().close();
  });

  it.each([true, false])('the tabs keep what is typed (JavaScript: %s)', async (javaScriptEnabled) => {
    const { contestId } = await at.createCase(undefined, 'A new case.');
    const page = await at.enter('ada', { javaScriptEnabled });
    await open(page, contestId);
    expect(await page.locator('#question').isVisible()).toBe(false);
    await page.locator('#reason').fill('Half a reason');
    await page.locator('#tab-ask').check();
    await page.locator('#question').fill('Which tools do you use when you shop?');
    await page.locator('#tab-extend').check();
    expect(await page.locator('#extension').isVisible()).toBe(true);
    await page.locator('#tab-history').check();
    expect(await page.locator('#audit-title').isVisible()).toBe(true);
    await page.locator('#tab-ask').check();
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
    await page.getByText('Your question was recorded').waitFor();
    expect(await page.locator('#reason').inputValue()).toBe('Half a reason');
    await page.context().close();
  });

  it('the ruling stays in view beside a long case, and its button names the act', async () => {
    const { contestId } = await at.createCase(undefined, LONG);
    const page = await at.enter('ada', { viewport: { width: 1440, height: 900 } });
    await open(page, contestId);
    await page.getByLabel('Uphold it.').check();
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
    expect(await page.evaluate(() => window.scrollY)).toBeGreaterThan(300);
    const button = page.getByRole('button', { name: 'Resolve the case' });
    const suffix = await button.evaluate((one) => getComputedStyle(one, '::after').content);
    expect(suffix).toContain('the decision stands');
    const box = await button.boundingBox();
    expect(box && box.y > 0 && box.y + box.height < 900).toBe(true);
    await page.context().close();
  });

  it('a refused reason on a phone: its error and its field are in view, and the field has the focus', async () => {
    const { contestId } = await at.createCase(undefined, LONG);
    const page = await at.enter('ada', { ...PHONE, javaScriptEnabled: true });
    await open(page, contestId);
    await page.getByLabel('Overturn it.').check();
    await page.locator('#reason').fill('too short');
    // Browsers that do not check `minlength` leave it to the server.
    await page.locator('#work').evaluate((form: HTMLFormElement) => {
      form.noValidate = true;
    });
    await page.getByRole('button', { name: 'Resolve the case' }).click();
    await page.locator('#reason-error').waitFor();
    expect(await focused(page)).toBe('reason');
    for (const id of ['reason-error', 'reason']) {
      const box = await page.locator(`#${id}`).boundingBox();
      expect([id, box !== null && box.y >= 0 && box.y < 844]).toEqual([id, true]);
    }
    await page.context().close();
  });

  it('J and K walk between cases, a template selects its gap, and Ctrl with Enter sends the ruling', async () => {
    await change(at.site, (tx) => tx('contests').delete());
    const first = await at.createCase(undefined, 'The first one.');
    const second = await at.createCase(undefined, 'The second one.');
    await change(at.site, (tx) =>
      tx('contests')
        .where({ contest_id: first.contestId })
        .update({ due_at: Date.now() - DAY }),
    );
    const page = await at.enter('ada');
    await open(page, first.contestId);
    await page.keyboard.press('j');
    await page.waitForURL(new RegExp(second.contestId));
    await page.keyboard.press('k');
    await page.waitForURL(new RegExp(first.contestId));
    expect(await page.title()).toBe('Overdue · The first one. · gpd');
    await page.getByRole('button', { name: 'An assistive tool' }).click();
    await page.waitForURL(/#resolve$/);
    await page.waitForFunction(() => document.activeElement?.id === 'reason');
    await page.keyboard.type(REASON);
    expect(await page.locator('#reason').inputValue()).toMatch(new RegExp(`: ${REASON}$`));
    expect(await page.locator('.counter').first().textContent()).toMatch(/^\d+ of 4,000$/);
    // Without a ruling the form is not sent.
    await page.keyboard.press('Control+Enter');
    expect(page.url()).toContain(first.contestId);
    await page.getByLabel('Overturn it.').check();
    await page.locator('#reason').focus();
    await page.keyboard.press('Control+Enter');
    await page.waitForURL(new RegExp(second.contestId));
    await page.getByText('Show that case').waitFor();
    await page.context().close();
  });

  it('the queue on a phone: 25 cases in two lines each', async () => {
    await change(at.site, (tx) => tx('contests').delete());
    await Promise.all(Array.from({ length: 26 }, () => at.createCase(undefined, LONG)));
    const page = await at.enter('ada', PHONE);
    const heights = await page
      .locator('[data-row]')
      .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
    expect(heights).toHaveLength(25);
    expect(Math.max(...heights)).toBeLessThanOrEqual(64);
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeLessThanOrEqual(2000);
    await page.setViewportSize({ width: 1440, height: 900 });
    const wide = await page.locator('[data-row]').first().boundingBox();
    expect(Math.round(wide?.height ?? 0)).toBeLessThanOrEqual(45);
    await page.context().close();
  });
});
