import { expect, it } from 'vitest';
import { describeInChromium } from '../../browser/support/chromium.ts';
import { REASON } from '../../support/constants.ts';
import { useBrowserConsole } from '../support/browser.ts';

/** Uses the console with the keyboard only, without JavaScript, and in print. */

describeInChromium('the console without a mouse, a script or a screen', () => {
  const at = useBrowserConsole();
  const { enter, createCase } = at;

  it('by keyboard alone: j, k, o, c, ? and Tab', async () => {
    const [first, second] = [await createCase(), await createCase()];
    const page = await enter('grace');
    const focused = (): Promise<string | null> =>
      page.evaluate(() => document.activeElement?.getAttribute('href') ?? document.activeElement?.id ?? null);
    // The first stop of Tab leads past the navigation.
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('#main');
    await page.keyboard.press('Enter');
    const inList = () => page.evaluate(() => document.activeElement?.closest('[data-row]') != null);
    // Letters work from the start; those that act on a row do nothing without one.
    for (const letter of ['o', 'c']) await page.keyboard.press(letter);
    expect(await focused()).toBe('main');
    await page.keyboard.press('k');
    expect(await inList()).toBe(true);
    await page.keyboard.press('?');
    const help = page.locator('#help');
    expect(await help.isVisible()).toBe(true);
    // Speech input sends letters too, so they can be turned off (WCAG 2.1.4).
    await help.getByRole('button', { name: 'Turn the shortcuts off' }).click();
    await page.keyboard.press('Escape');
    await page.goto(`${at.site.url}/console/queue`);
    for (const letter of ['?', 'j']) await page.keyboard.press(letter);
    expect([await help.isVisible(), await inList()]).toEqual([false, false]);
    await page.goto(`${at.site.url}/console/help`);
    await page.locator('main').getByRole('button', { name: 'Turn the shortcuts on' }).click();
    await page.goto(`${at.site.url}/console/queue`);
    await page.keyboard.press('j');
    expect(await inList()).toBe(true);
    await page.goto(`${at.site.url}/console/queue`);
    for (let i = 0; i < 40 && !(await inList()); i += 1) await page.keyboard.press('Tab');
    const top = await focused();
    await page.keyboard.press('?');
    expect(await page.locator('#help').isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    expect(await page.locator('#help').isVisible()).toBe(false);
    expect(await focused()).toBe(top);
    // A letter moves the focus to a button that changes data, and never presses it.
    await page.keyboard.press('c');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Claim');
    expect(new URL(page.url()).pathname).toBe('/console/queue');
    expect(await page.getByText('The case is yours').count()).toBe(0);
    await page.keyboard.press('j');
    expect(await focused()).not.toBe(top);
    await page.keyboard.press('k');
    expect(await focused()).toBe(top);
    // Letters are typed into a field while it has the focus.
    await page.focus('#q');
    await page.keyboard.type('jock?');
    expect(await page.inputValue('#q')).toBe('jock?');
    await page.fill('#q', second.requestId);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/contests\//);
    await page.keyboard.press('c');
    expect(await page.getByText('The case is yours').count()).toBe(0);
    await page.getByRole('button', { name: 'Claim this case' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('The case is yours until').first().waitFor();
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
    await page.getByText('The case is resolved').waitFor();
    await page.goto(`${at.site.url}/console/queue?q=${first.requestId}`);
    await page.goBack();
    await page.goto(`${at.site.url}/console/queue`);
    for (let i = 0; i < 40 && !(await inList()); i += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('o');
    await page.waitForURL(/\/contests\//);
  });

  it('without JavaScript: the same case, from the sign-in to the ruling', async () => {
    const { requestId } = await createCase();
    const page = await enter('ada', { javaScriptEnabled: false });
    await page.locator('tr', { hasText: requestId }).getByRole('button', { name: 'Claim' }).click();
    await page.getByLabel('Uphold it.').check();
    await page
      .getByLabel('Your reason, for the person')
      .fill('Several strong signs agree, and nothing explains them.');
    await page.getByRole('button', { name: 'Resolve the case' }).click();
    await page.getByRole('link', { name: 'Show that case' }).click();
    await page.getByText('The automated decision stands.').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out').waitFor();
  });

  it('printed, a case is the evidence without the forms', async () => {
    const { contestId } = await createCase();
    const page = await enter('ada');
    await page.goto(`${at.site.url}/console/contests/${contestId}`);
    await page.emulateMedia({ media: 'print' });
    for (const hidden of ['#reason', '#question', '.side nav', '[data-claim]']) {
      expect(await page.locator(hidden).first().isVisible()).toBe(false);
    }
    for (const shown of ['#statement-title', '#verdict-title', '#trail-title', '#audit-title']) {
      expect(await page.locator(shown).isVisible()).toBe(true);
    }
  });
});
