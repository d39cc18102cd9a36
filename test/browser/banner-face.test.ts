import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { started } from '../support/started.ts';
import { describeInChromium, useTabs } from './support/chromium.ts';
import { type Shop, type ShopPage, startShop } from './support/shop.ts';

/** The question under the name of the site, its foot, and the ways back to the settings. */

const SITE = {
  'banner.siteName': 'Lanterne',
  'banner.policyUrl': 'https://shop.example/privacy',
  'banner.imprintUrl': 'https://shop.example/imprint',
};
const PHONE = { viewport: { width: 390, height: 844 } };
const LINK = '<p><a id="choices" href="/privacy-page" data-gpd-choices>Privacy</a></p>';

describeInChromium('browser/the face of the banner', () => {
  const { openTab, faults } = useTabs();
  const named = started(() => startShop({ analytics: false, settings: SITE }));
  const nameless = started(() => startShop());
  let page: Page;

  async function open(shop: Shop, options: ShopPage = {}): Promise<void> {
    page = await openTab(shop.page(options), PHONE);
    await page.getByTestId('consent-banner').waitFor();
  }

  const layer = () => page.getByTestId('consent-banner');
  const reopen = () => page.getByTestId('consent-reopen');
  const settings = () => page.getByTestId('consent-save');
  const title = (): Promise<string | null> => layer().locator('h2').textContent();
  const links = () =>
    layer()
      .locator('a')
      .evaluateAll((all) => all.map((link) => [link.textContent, (link as HTMLAnchorElement).href]));

  it.each([
    ['en', 'May Lanterne recognise your device?', 'Privacy policy', 'Imprint'],
    ['de', 'Darf Lanterne Ihr Gerät wiedererkennen?', 'Datenschutzerklärung', 'Impressum'],
    [
      'fr',
      'Autorisez-vous Lanterne à reconnaître votre appareil ?',
      'Politique de confidentialité',
      'Mentions légales',
    ],
    ['pl', 'Czy Lanterne może rozpoznawać Twoje urządzenie?', 'Polityka prywatności', 'Dane wydawcy'],
  ])(
    '%s: it names the site, links policy and imprint, and is no taller than 352 px',
    async (language, asks, policy, imprint) => {
      await open(named, { language });
      expect(await title()).toBe(asks);
      expect(await links()).toEqual([
        [policy, SITE['banner.policyUrl']],
        [imprint, SITE['banner.imprintUrl']],
      ]);
      const { height = 0 } = (await layer().boundingBox()) ?? {};
      process.stderr.write(`banner at 390 px in ${language}: ${Math.round(height)} px\n`);
      expect(height).toBeGreaterThan(100);
      expect(height).toBeLessThanOrEqual(352);
    },
  );

  it('without these settings it has no link and no name', async () => {
    await open(nameless);
    expect(await title()).toBe('May this site do this?');
    expect(await links()).toEqual([]);
    expect(await layer().locator('.foot').count()).toBe(0);
  });

  it('markup of the page’s server says the same, and the script keeps its elements', async () => {
    // The parser is done, and no deferred script has run.
    const keep =
      "document.addEventListener('readystatechange', () => { window.drawn ??= document.querySelector('gpd-consent').shadowRoot.querySelector('h2') })";
    page = await openTab(named.page({ markup: '' }), PHONE, keep);
    await page.getByTestId('consent-settings').click();
    await settings().waitFor();
    expect(await page.evaluate('drawn.isConnected')).toBe(true);
    expect(await title()).toBe('May Lanterne recognise your device?');
    expect(await links()).toHaveLength(2);
  });

  it('a pill of 36 px at the corner stays, and covers no line of the page', async () => {
    await open(named);
    await page.getByTestId('consent-reject').click();
    await reopen().waitFor();
    const { x = 0, y = 0, width = 0, height = 0 } = (await reopen().boundingBox()) ?? {};
    expect({ x, height, below: 844 - y - height }).toEqual({ x: 16, height: 36, below: 16 });
    expect(width).toBeLessThan(195);
  });

  it('with a link of the page there is no pill, and the link opens the settings', async () => {
    await open(named, { body: LINK });
    await page.getByTestId('consent-reject').click();
    await layer().waitFor({ state: 'hidden' });
    expect(await reopen().isVisible()).toBe(false);
    const address = page.url();
    await page.locator('#choices').click();
    await settings().waitFor();
    await page.keyboard.press('Escape');
    expect(await page.evaluate('document.activeElement.id')).toBe('choices');
    expect(page.url()).toBe(address);
    expect(faults).toEqual([]);
  });

  it('the pill is there as long as nobody can see such a link', async () => {
    await open(named, { body: `<div hidden>${LINK}</div>` });
    await page.getByTestId('consent-reject').click();
    await reopen().waitFor();
    const add =
      "document.querySelector('main').append(Object.assign(document.createElement('button'), { id: 'late', textContent: 'Privacy' }))";
    await page.evaluate(
      `document.querySelector('[hidden]').remove(); ${add}; document.getElementById('late').dataset.gpdChoices = ''`,
    );
    await reopen().waitFor({ state: 'hidden' });
    await page.evaluate("document.getElementById('late').remove()");
    await reopen().waitFor();
  });

  it('without gpd the link leads where the page has pointed it', async () => {
    await open(named, { body: LINK });
    const address = named.page({ body: LINK });
    await named.stop();
    await page.goto(address);
    await page.evaluate('gpd.consent.ready');
    await Promise.all([page.waitForURL('**/privacy-page'), page.locator('#choices').click()]);
    await named.restart();
  });
});
