import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch } from '../../browser/support/drivers.ts';
import { describeInFirefox } from '../../browser/support/firefox.ts';
import { REASON } from '../../support/constants.ts';
import { type Console, startConsole } from '../support/console.ts';

/** The main journey of staff in Firefox. */

describeInFirefox('the console in Firefox', () => {
  let site: Console;
  let browser: Browser;

  beforeAll(async () => {
    [site, browser] = await Promise.all([startConsole(), launch('firefox')]);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.stop();
  });

  /** Presses a link or a button, and waits for the next page. */
  async function press(page: Page, selector: string): Promise<void> {
    await Promise.all([page.waitForNavigation(), page.locator(selector).click()]);
  }
  const says = (page: Page, text: string): Promise<unknown> =>
    page.waitForFunction((words) => document.body.textContent.includes(words), {}, text);

  async function enter(account: string): Promise<Page> {
    const page = await (await browser.createBrowserContext()).newPage();
    await page.goto(`${site.url}/console`);
    await page.locator('input[name="login"]').fill(account);
    await page.locator('input[name="password"]').fill('x');
    await press(page, 'button[type="submit"]');
    if (page.url().startsWith(site.idp.issuer)) await press(page, 'button[type="submit"]');
    expect(page.url()).toContain('/console/queue');
    return page;
  }

  it('a reviewer signs in, claims, overturns, and the next verdict is human', async () => {
    const { requestId, visitorId, class: before } = await site.decide('journey');
    expect(before).toBe('undeclared_automation');
    const contestId = await site.contest(requestId, visitorId, 'I type with a switch.');
    const page = await enter('ada');
    const faults: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    page.on('pageerror', (error) => faults.push(String(error)));
    await press(page, `form[action="/console/contests/${contestId}/claim"] button`);
    await says(page, 'The case is yours until');
    await page.locator('#outcome-overturned').click();
    await page.locator('#reason').fill(REASON);
    await press(page, '#resolve form button');
    await says(page, 'The case is resolved');
    await says(page, REASON);
    expect((await site.decide('journey')).class).toBe('human');
    const time = await page.$eval('time[data-zone]', (one) => [one.textContent, one.getAttribute('title')]);
    expect(time[0]).not.toContain('UTC');
    expect(time[1]).toMatch(/^\d{4}-.*Z$/);
    expect(faults).toEqual([]);
    await page.browserContext().close();
  });
});
