import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { describeInChromium } from './support/chromium.ts';
import { useMyData } from './support/my-data.ts';

/** A person at the page that a site links to: told, forgotten, heard. */

describeInChromium('browser/my-data', () => {
  const at = useMyData();
  const { problems, open, look, forget, rows, text, says } = at;

  it('asks nothing before the button, then shows the verdict, and that no signal is kept', async () => {
    await open();
    expect(await rows('decisions')).toBe(0);
    await look();
    await at.page.getByTestId('nothing').waitFor();
    expect(await text('verdict')).toMatch(/req_[0-9A-Z]{26}/);
    // Said before the press and after it: what a look-up is, and what a shared id hides.
    expect(await at.page.locator('main').textContent()).toMatch(
      /its id may be shared.*kept as long as any other/s,
    );
    await says(/only this look-up is shown, and no earlier visit/);
    const [cookie] = await at.page.context().cookies();
    expect(cookie).toMatchObject({ name: 'gp_session', httpOnly: true, secure: true, sameSite: 'Strict' });
    expect(await rows('decisions')).toBe(1);
    expect(problems).toEqual([]);
  });

  it('forgets this device, and the server holds nothing of it any more', async () => {
    await open();
    await look();
    const request = /req_[0-9A-Z]{26}/.exec(await text('verdict'))?.[0] ?? '';
    const countDecisions = () =>
      execute(at.gpd.dataDir, `SELECT 1 FROM decisions WHERE request_id = '${request}'`).then(
        (found) => found.length,
      );
    expect(await countDecisions()).toBe(1);
    await forget();
    await says(/^Only this visit was erased/);
    expect(await text('receipt')).toMatch(/^era_/);
    expect(await countDecisions()).toBe(0);
    expect(readFileSync(join(at.gpd.dataDir, 'gpd.db')).includes(request)).toBe(false);
    expect(await at.page.getByTestId('forget').isVisible()).toBe(false);
    expect(problems).toEqual([]);
  });

  it('learns nothing more under Global Privacy Control, and nothing is written', async () => {
    const before = await rows('decisions');
    await open();
    await at.page.addInitScript(
      "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true })",
    );
    await at.page.reload();
    await at.page.getByTestId('look').click();
    await says(/Global Privacy Control/);
    expect(await rows('decisions')).toBe(before);
    // The page names the remedies without the check, and the site's contact or its absence.
    const ways = await text('ways');
    expect(ways).toMatch(
      /Use the link on the site.*open your case.*This site has not named a contact\..*req_/s,
    );
    expect(await at.page.getByTestId('ways').locator('a').getAttribute('href')).toBe(`${at.base}/case`);
  });

  it('keeps what was typed for longer than a token lives, and says so beside the button', async () => {
    await open({ viewport: { width: 390, height: 844 } });
    await look();
    await at.page.getByTestId('contest').locator('summary').click();
    await at.page.getByTestId('file').click();
    // The browser itself asks for the words.
    expect(await at.page.getByTestId('filed').count()).toBe(0);
    const statement = at.page.locator('textarea[name="statement"]');
    await statement.fill('x'.repeat(3_900));
    await at.page.getByText('100 characters are left.').waitFor();
    await statement.fill('x'.repeat(4_000));
    await at.page.getByText('This is the limit of 4,000 characters. Nothing more fits.').waitFor();
    await statement.fill('I type slowly.');
    await at.page.locator('input[name="email"]').fill('slow@mail.example');
    // The token has expired, as it does after five minutes.
    await at.page.locator('form:has(textarea) input[name="token"]').evaluate((field) => {
      (field as HTMLInputElement).value = 'expired';
    });
    await at.page.getByTestId('file').click();
    const refused = at.page.getByTestId('refused');
    await refused.waitFor();
    expect(await refused.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(await refused.textContent()).toMatch(/^Nothing was erased or filed.*What you typed is kept\./);
    const [error, button] = [await refused.boundingBox(), await at.page.getByTestId('file').boundingBox()];
    expect((button?.y ?? 0) - ((error?.y ?? 0) + (error?.height ?? 0))).toBeLessThan(100);
    await refused.getByRole('button').click();
    await says(/back in the form/);
    expect(await statement.inputValue()).toBe('I type slowly.');
    expect(await at.page.locator('input[name="email"]').inputValue()).toBe('slow@mail.example');
    await at.page.getByTestId('file').click();
    const key = await text('case-key');
    expect(key).toMatch(/^([0-9A-Z]{5}-){5}[0-9A-Z]$/);
    expect(await at.page.getByTestId('case-link').getAttribute('href')).toBe(`${at.base}/case#${key}`);
    await says('Your objection was filed. A person will review it.');
  });

  it('a link with the token of a visit shows that visit; one that is over says so', async () => {
    await open();
    await at.page.goto('about:blank');
    await at.page.goto(`${at.base}/my-data?kid=${KID}#visit=over`);
    await says(/cannot be shown any more/);
    await at.page.getByTestId('ways').waitFor();
    expect(at.page.url()).toBe(`${at.base}/my-data?kid=${KID}`);
    await look();
    const token = await at.page.locator('input[name="token"]').first().getAttribute('value');
    const before = await rows('decisions');
    await at.page.goto('about:blank');
    await at.page.goto(`${at.base}/my-data?kid=${KID}#visit=${token}`);
    await at.page.getByTestId('verdict').waitFor();
    expect(at.page.url()).not.toContain('#');
    await says(/^This is the visit that the link brought here/);
    expect(await rows('decisions')).toBe(before);
  });
});
