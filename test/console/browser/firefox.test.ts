import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch } from '../../browser/support/drivers.ts';
import { describeInFirefox } from '../../browser/support/firefox.ts';
import { tempDir } from '../../support/command.ts';
import { REASON } from '../../support/constants.ts';
import { type Console, startConsole } from '../support/console.ts';

/** The main journeys of staff in Firefox: with the mouse, with the keyboard only, and without JavaScript. */

async function createCase(site: Console, device?: string) {
  const decided = await site.decide(device);
  const statement = 'I am a person, and I type with a switch.';
  return { ...decided, contestId: await site.contest(decided.requestId, decided.visitorId, statement) };
}

describeInFirefox('the console in Firefox', () => {
  let site: Console;
  let browser: Browser;
  const downloads = tempDir('downloads');

  beforeAll(async () => {
    const preferences = {
      'browser.download.folderList': 2,
      'browser.download.dir': downloads,
      'browser.download.useDownloadDir': true,
      'browser.helperApps.neverAsk.saveToDisk': 'application/zip',
      'browser.download.always_ask_before_handling_new_types': false,
      'browser.download.alwaysOpenPanel': false,
    };
    [site, browser] = await Promise.all([startConsole(), launch('firefox', preferences)]);
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
    const { contestId, class: before } = await createCase(site, 'journey');
    expect(before).toBe('undeclared_automation');
    const page = await enter('ada');
    const faults: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    page.on('pageerror', (error) => faults.push(String(error)));
    await press(page, `form[action="/console/contests/${contestId}/claim"] button`);
    await says(page, 'The case is yours for an hour');
    await page.locator('#outcome-overturned').click();
    await page.locator('#reason').fill(REASON);
    await press(page, '#resolve form button');
    await says(page, 'the person can read the outcome');
    await says(page, REASON);
    expect((await site.decide('journey')).class).toBe('human');
    const time = await page.$eval('time[data-zone]', (one) => [one.textContent, one.getAttribute('title')]);
    expect(time[0]).not.toContain('UTC');
    expect(time[1]).toMatch(/^\d{4}-.*Z$/);
    expect(faults).toEqual([]);
    await page.browserContext().close();
  });
});
