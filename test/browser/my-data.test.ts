import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { execute } from '../support/database.ts';
import { describeInChromium } from './support/chromium.ts';
import { useMyData } from './support/my-data.ts';

/** A person at the page that a site links to: told, forgotten, heard. */

describeInChromium('browser/my-data', () => {
  const at = useMyData();
  const { problems, open, look, forget, rows } = at;

  it('asks nothing before the button, then shows the verdict, and that no signal is kept', async () => {
    await open();
    expect(await rows('decisions')).toBe(0);
    await look();
    await at.page.getByTestId('nothing').waitFor();
    expect(await at.page.getByTestId('verdict').textContent()).toMatch(/req_[0-9A-Z]{26}/);
    const [cookie] = await at.page.context().cookies();
    expect(cookie).toMatchObject({ name: 'gp_session', httpOnly: true, secure: true, sameSite: 'Strict' });
    expect(await rows('decisions')).toBe(1);
    expect(problems).toEqual([]);
  });

  it('forgets this device, and the server holds nothing of it any more', async () => {
    await open();
    await look();
    const request =
      /req_[0-9A-Z]{26}/.exec((await at.page.getByTestId('verdict').textContent()) ?? '')?.[0] ?? '';
    const left = () =>
      execute(at.gpd.dataDir, `SELECT 1 FROM decisions WHERE request_id = '${request}'`).then(
        (found) => found.length,
      );
    expect(await left()).toBe(1);
    await forget();
    await expect.poll(() => at.page.getByTestId('status').textContent()).toMatch(/^Forgotten/);
    expect(await at.page.getByTestId('receipt').textContent()).toMatch(/^era_/);
    expect(await left()).toBe(0);
    expect(readFileSync(join(at.gpd.dataDir, 'gpd.db')).includes(request)).toBe(false);
    expect(await at.page.getByTestId('forget').isVisible()).toBe(false);
    expect(problems).toEqual([]);
  });

  it('is told no more under Global Privacy Control, and nothing is written', async () => {
    const before = await rows('decisions');
    await open();
    await at.page.addInitScript(
      "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true })",
    );
    await at.page.reload();
    await at.page.getByTestId('look').click();
    await expect.poll(() => at.page.getByTestId('status').textContent()).toMatch(/Global Privacy Control/);
    expect(await rows('decisions')).toBe(before);
  });

  it('files a contest in one’s own words, and shows its key', async () => {
    await open({ viewport: { width: 390, height: 844 } });
    await look();
    await at.page.getByTestId('contest').locator('summary').click();
    await at.page.getByTestId('file').click();
    // The browser itself asks for the words.
    expect(await at.page.getByTestId('filed').count()).toBe(0);
    await at.page.locator('textarea[name="statement"]').fill('I am a person with a driven browser.');
    await at.page.getByTestId('file').click();
    const key = await at.page.getByTestId('case-key').textContent();
    expect(key).toMatch(/^([0-9A-Z]{5}-){5}[0-9A-Z]$/);
    expect(await at.page.getByTestId('case-link').getAttribute('href')).toBe(`${at.base}/case#${key}`);
    await expect.poll(() => at.page.getByTestId('status').textContent()).toBe('Your contest was filed.');
    if (process.env['SHOTS'])
      await at.page.screenshot({ path: join(process.env['SHOTS'], 'my-data-filed-390.png'), fullPage: true });
    expect(problems).toEqual([]);
  });
});
