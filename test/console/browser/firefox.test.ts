import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch } from '../../browser/support/drivers.ts';
import { describeInFirefox, type Firefox, startFirefox } from '../../browser/support/firefox.ts';
import { tempDir } from '../../support/command.ts';
import { REASON } from '../../support/constants.ts';
import { type Console, startConsole } from '../support/console.ts';

/** The main journeys of staff in Firefox: by mouse, by keyboard alone, and without JavaScript. */

/** Firefox beside other work: each press is a page of its own. */

async function makeCase(site: Console, device?: string) {
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

  /** Presses what navigates, and waits for the page behind it. */
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
    const { contestId, class: before } = await makeCase(site, 'journey');
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

  it('a dpo exports and erases a subject', async () => {
    const { requestId } = await makeCase(site);
    let page = await enter('dora');
    const find = async (): Promise<void> => {
      await page.goto(`${site.url}/console/subjects`);
      await page.select('#kind', 'request');
      await page.locator('#id').fill(requestId);
      await press(page, 'form[action="/console/subjects"] button');
    };
    await find();
    await page.locator('#unnamed').click();
    // A download, and no page.
    await page.locator('form[action="/console/subjects/export"] button').click();
    const files = (): string[] => readdirSync(downloads).filter((name) => name.endsWith('.zip'));
    await expect.poll(files).toHaveLength(1);
    const bytes = (): string => readFileSync(join(downloads, files()[0]!)).subarray(0, 4).toString('latin1');
    await expect.poll(bytes).toBe('PK\u0003\u0004');
    // The driver still waits for the page that became a download.
    page = await page.browserContext().newPage();
    await find();
    await press(page, 'form[action="/console/subjects/plan"] button');
    const handle = await page.$eval('h1 code', (code) => code.textContent);
    await page.locator('#confirm').fill('something else');
    await press(page, 'form[action="/console/subjects/erase"] button');
    await says(page, 'Nothing was erased');
    await page.locator('#confirm').fill(handle);
    await press(page, 'form[action="/console/subjects/erase"] button');
    await says(page, 'The subject is erased');
    await find();
    await says(page, 'Nothing is held about that id');
    await page.browserContext().close();
  });

  it('by keyboard alone: Tab, j, k, o, c, ? and the form', async () => {
    const [{ contestId }] = [await makeCase(site), await makeCase(site)];
    const page = await enter('grace');
    const focused = (): Promise<string | null> =>
      page.evaluate(() => {
        const at = document.activeElement;
        return at?.getAttribute('href') ?? at?.id ?? null;
      });
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('#main');
    await page.keyboard.press('Enter');
    const helpShown = (): Promise<boolean> => page.$eval('#help', (help) => help.getClientRects().length > 0);
    // Outside the list no letter does anything.
    await page.keyboard.type('?j');
    expect(await helpShown()).toBe(false);
    expect(await focused()).toBe('main');
    const inList = () => page.evaluate(() => document.activeElement?.closest('[data-row]') != null);
    for (let i = 0; i < 40 && !(await inList()); i += 1) await page.keyboard.press('Tab');
    const top = await focused();
    await page.keyboard.type('?');
    expect(await helpShown()).toBe(true);
    await page.keyboard.press('Escape');
    expect(await helpShown()).toBe(false);
    expect(top).toMatch(/^\/console\/contests\//);
    await page.keyboard.press('j');
    expect(await focused()).not.toBe(top);
    await page.keyboard.press('k');
    expect(await focused()).toBe(top);
    await Promise.all([page.waitForNavigation(), page.keyboard.press('o')]);
    expect(page.url()).toContain(top);
    await page.goto(`${site.url}/console/contests/${contestId}`);
    await page.focus('[data-claim]');
    await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
    await says(page, 'The case is yours for an hour');
    for (let i = 0; i < 60 && (await focused())?.startsWith('outcome-') !== true; i += 1)
      await page.keyboard.press('Tab');
    expect(await focused()).toBe('outcome-overturned');
    await page.keyboard.press(' ' as 'Space');
    for (let i = 0; i < 10 && (await focused()) !== 'reason'; i += 1) await page.keyboard.press('Tab');
    await page.keyboard.type(REASON);
    const label = (): Promise<string | undefined> => page.evaluate(() => document.activeElement?.textContent);
    for (let i = 0; i < 8 && (await label()) !== 'Resolve the case'; i += 1) await page.keyboard.press('Tab');
    expect(await page.evaluate(() => getComputedStyle(document.activeElement!).outlineWidth)).toBe('2px');
    await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
    await says(page, 'the person can read the outcome');
    await page.browserContext().close();
  });
});

/** By the browser's own protocol: it presses and reads without a script in the page. */
describeInFirefox('the console in Firefox without JavaScript', () => {
  let site: Console;
  let firefox: Firefox;

  beforeAll(async () => {
    const preferences = { 'javascript.enabled': false };
    [site, firefox] = await Promise.all([startConsole(), startFirefox(tempDir('firefox'), preferences)]);
  });
  afterAll(async () => {
    await firefox?.quit();
    await site?.stop();
  });

  const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf';
  async function find(selector: string): Promise<string> {
    const found = (await firefox.command('WebDriver:FindElement', {
      using: 'css selector',
      value: selector,
    })) as Record<string, string>;
    return found[ELEMENT] ?? '';
  }
  const press = async (selector: string): Promise<unknown> =>
    firefox.command('WebDriver:ElementClick', { id: await find(selector) });
  const type = async (selector: string, text: string): Promise<unknown> =>
    firefox.command('WebDriver:ElementSendKeys', { id: await find(selector), text });
  const text = async (selector = 'body'): Promise<string> =>
    (await firefox.command('WebDriver:GetElementText', { id: await find(selector) })) as string;
  const go = (path: string): Promise<unknown> =>
    firefox.command('WebDriver:Navigate', { url: `${site.url}${path}` });
  const at = async (): Promise<string> => (await firefox.command('WebDriver:GetCurrentURL')) as string;

  it('from the sign-in to the ruling, and an export', async () => {
    const { contestId, requestId } = await makeCase(site, 'unscripted');
    await go('/console');
    await type('input[name="login"]', 'dora');
    await type('input[name="password"]', 'x');
    await press('button[type="submit"]');
    if ((await at()).startsWith(site.idp.issuer)) await press('button[type="submit"]');
    await expect.poll(at).toContain('/console/queue');
    // No script ran: what only scripts show is not there.
    await expect(find('html.scripted')).rejects.toThrow('no such element');
    await press(`form[action="/console/contests/${contestId}/claim"] button`);
    await expect.poll(text).toContain('The case is yours for an hour');
    await press('#outcome-overturned');
    await type('#reason', REASON);
    await press('#resolve form button');
    await expect.poll(text).toContain('the person can read the outcome');
    expect(await text('time[data-zone]')).toContain('UTC');
    expect((await site.decide('unscripted')).class).toBe('human');
    await go('/console/subjects');
    await type('#kind', 'Request id');
    await type('#id', requestId);
    await press('form[action="/console/subjects"] button');
    await expect.poll(text).toContain('What we hold about');
    await press('#unnamed');
    await press('form[action="/console/subjects/export"] button');
    await press('form[action="/console/logout"] button');
    await expect.poll(text).toContain('You are signed out');
  });
});
