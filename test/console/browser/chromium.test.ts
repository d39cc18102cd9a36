import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { describeInChromium } from '../../browser/support/chromium.ts';
import { REASON } from '../../support/constants.ts';
import { useBrowserConsole } from '../support/browser.ts';

/** The main journeys of staff in Chromium. */

describeInChromium('the console in a browser', () => {
  const at = useBrowserConsole();
  const { enter, createCase } = at;

  it('a reviewer signs in, claims, overturns, and the next verdict is human', async () => {
    const device = 'journey';
    const { requestId, class: before } = await createCase(device);
    expect(before).toBe('undeclared_automation');
    const page = await enter('ada');
    const faults: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    page.on('pageerror', (error) => faults.push(error.message));
    const row = page.locator('tr', { hasText: requestId });
    await row.getByRole('button', { name: 'Claim' }).click();
    await page.getByText('The case is yours until').first().waitFor();
    await page.getByLabel('Overturn it.').check();
    await page.getByLabel('Your reason, for the person').fill(REASON);
    await page.getByRole('button', { name: 'Resolve the case' }).click();
    await page.getByText('The case is resolved').waitFor();
    expect(await page.getByText(REASON).isVisible()).toBe(true);
    expect((await at.site.decide(device)).class).toBe('human');
    // Times are shown in the viewer's zone; the exact time stays in the title.
    const time = page.locator('time[data-zone]').first();
    await page.waitForFunction((one) => !one?.textContent?.includes('UTC'), await time.elementHandle());
    expect(await time.getAttribute('title')).toMatch(/^\d{4}-.*Z$/);
    expect(faults).toEqual([]);
  });

  it('a dpo exports and erases a subject', async () => {
    const { requestId } = await createCase();
    const page = await enter('dora', { acceptDownloads: true });
    const find = async (): Promise<void> => {
      await page.goto(`${at.site.url}/console/subjects`);
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

  it('a statement of an enemy runs nothing and turns nothing around', async () => {
    const statement = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>\u202eevil`;
    const { requestId } = await createCase(undefined, statement);
    const page = await enter('ada');
    await page.goto(`${at.site.url}/console/queue?q=${requestId}`);
    expect(await page.title()).not.toContain('owned');
    expect(await page.locator('.prose').first().textContent()).toContain('<img src=x');
    expect(await page.locator('main img').count()).toBe(0);
  });
});
