import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeInChromium } from '../../browser/support/chromium.ts';
import { REASON } from '../../support/constants.ts';
import { type BrowserConsole, startBrowserConsole } from '../support/browser.ts';
import type { Console } from '../support/console.ts';

/** People at the console, in a real browser: with the mouse, by keyboard alone, without JavaScript. */

describeInChromium('the console in a browser', () => {
  let at: BrowserConsole;
  let site: Console;
  let enter: BrowserConsole['enter'];
  let makeCase: BrowserConsole['makeCase'];

  beforeAll(async () => {
    at = await startBrowserConsole();
    ({ site, enter, makeCase } = at);
  });
  afterAll(() => at.stop());

  it('a reviewer signs in, claims, overturns, and the next verdict is human', async () => {
    const device = 'journey';
    const { requestId, class: before } = await makeCase(device);
    expect(before).toBe('undeclared_automation');
    const page = await enter('ada');
    const faults: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    page.on('pageerror', (error) => faults.push(error.message));
    const row = page.locator('tr', { hasText: requestId });
    await row.getByRole('button', { name: 'Claim' }).click();
    await page.getByText('The case is yours for an hour').waitFor();
    await page.getByLabel('Overturn it.').check();
    await page.getByLabel('Your reason, for the person').fill(REASON);
    await page.getByRole('button', { name: 'Resolve the case' }).click();
    await page.getByText('the person can read the outcome').waitFor();
    expect(await page.getByText(REASON).isVisible()).toBe(true);
    expect((await site.decide(device)).class).toBe('human');
    // Times are in the viewer's zone; the exact moment stays.
    const time = page.locator('time[data-zone]').first();
    expect(await time.textContent()).not.toContain('UTC');
    expect(await time.getAttribute('title')).toMatch(/^\d{4}-.*Z$/);
    expect(faults).toEqual([]);
  });

  it('a dpo exports and erases a subject', async () => {
    const { requestId } = await makeCase();
    const page = await enter('dora', { acceptDownloads: true });
    const find = async (): Promise<void> => {
      await page.goto(`${site.url}/console/subjects`);
      await page.getByLabel('By', { exact: true }).selectOption('request');
      await page.getByLabel('Id', { exact: true }).fill(requestId);
      await page.getByRole('button', { name: 'Find' }).click();
    };
    await find();
    await page.getByLabel('Export it without them').check();
    const button = page.getByRole('button', { name: 'Export everything' });
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
    const bytes = readFileSync(await download.path());
    expect(bytes.subarray(0, 4).toString('latin1')).toBe('PK\u0003\u0004');
    await find();
    await page.getByRole('button', { name: 'Plan an erasure' }).click();
    const handle = (await page.locator('h1 code').textContent()) ?? '';
    await page.getByLabel('To confirm, type the handle').fill('something else');
    await page.getByRole('button', { name: 'Erase it now' }).click();
    await page.getByText('Nothing was erased').waitFor();
    await page.getByLabel('To confirm, type the handle').fill(handle);
    await page.getByRole('button', { name: 'Erase it now' }).click();
    await page.getByText('The subject is erased').waitFor();
    await find();
    await page.getByText('Nothing is held about that id').waitFor();
  });

  it('by keyboard alone: j, k, o, c, ? and Tab', async () => {
    const [first, second] = [await makeCase(), await makeCase()];
    const page = await enter('grace');
    const focused = (): Promise<string | null> =>
      page.evaluate(() => document.activeElement?.getAttribute('href') ?? document.activeElement?.id ?? null);
    // The first stop of Tab leads past the navigation.
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('#main');
    await page.keyboard.press('Enter');
    await page.keyboard.press('?');
    expect(await page.locator('#help').isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    expect(await page.locator('#help').isVisible()).toBe(false);
    await page.keyboard.press('j');
    const top = await focused();
    await page.keyboard.press('j');
    expect(await focused()).not.toBe(top);
    await page.keyboard.press('k');
    expect(await focused()).toBe(top);
    // Letters belong to a field while it has the focus.
    await page.focus('#q');
    await page.keyboard.type('jock?');
    expect(await page.inputValue('#q')).toBe('jock?');
    await page.fill('#q', second.requestId);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/contests\//);
    await page.keyboard.press('c');
    await page.getByText('The case is yours for an hour').waitFor();
    for (let i = 0; i < 60 && (await focused()) !== 'outcome-overturned'; i += 1)
      await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    for (let i = 0; i < 10 && (await focused()) !== 'reason'; i += 1) await page.keyboard.press('Tab');
    await page.keyboard.type(REASON);
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Resolve the case');
    const outline = await page.evaluate(
      () => getComputedStyle(document.activeElement as Element).outlineWidth,
    );
    expect(outline).toBe('2px');
    await page.keyboard.press('Enter');
    await page.getByText('the person can read the outcome').waitFor();
    await page.goto(`${site.url}/console/queue?q=${first.requestId}`);
    await page.goBack();
    await page.goto(`${site.url}/console/queue`);
    await page.keyboard.press('j');
    await page.keyboard.press('o');
    await page.waitForURL(/\/contests\//);
  });

  it('without JavaScript: the same case, from the sign-in to the ruling', async () => {
    const { requestId } = await makeCase();
    const page = await enter('ada', { javaScriptEnabled: false });
    await page.locator('tr', { hasText: requestId }).getByRole('button', { name: 'Claim' }).click();
    await page.getByLabel('Uphold it.').check();
    await page
      .getByLabel('Your reason, for the person')
      .fill('Several strong signs agree, and nothing explains them.');
    await page.getByRole('button', { name: 'Resolve the case' }).click();
    await page.getByText('The automated decision stands.').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out').waitFor();
  });

  it('printed, a case is the evidence without the forms', async () => {
    const { contestId } = await makeCase();
    const page = await enter('ada');
    await page.goto(`${site.url}/console/contests/${contestId}`);
    await page.emulateMedia({ media: 'print' });
    for (const hidden of ['#reason', '#question', '.bar nav', '[data-claim]']) {
      expect(await page.locator(hidden).first().isVisible()).toBe(false);
    }
    for (const shown of ['#statement-title', '#verdict-title', '#trail-title', '#audit-title']) {
      expect(await page.locator(shown).isVisible()).toBe(true);
    }
  });

  it('a statement of an enemy runs nothing and turns nothing around', async () => {
    const statement = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>\u202eevil`;
    const { requestId } = await makeCase(undefined, statement);
    const page = await enter('ada');
    await page.goto(`${site.url}/console/queue?q=${requestId}`);
    expect(await page.title()).not.toContain('owned');
    expect(await page.locator('.prose').first().textContent()).toContain('<img src=x');
    expect(await page.locator('main img').count()).toBe(0);
  });
});
