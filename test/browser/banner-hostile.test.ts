import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { describeInBrowser } from '../support/tools.ts';
import { type BrowserName, launch, missingBrowser, type Visitor, visit } from './support/drivers.ts';
import { AGENT, ANALYTICS, type Banner, bannerOf, type Shop, startShop } from './support/shop.ts';

/** A page whose own scripts throw where the banner calls them: a withdrawal reaches the ledger all the same. */

const THROWS = {
  'a data layer': `window.dataLayer = { push() { throw new Error('tag manager'); } };`,
  'a body that takes no children': `addEventListener('DOMContentLoaded', () => {
    window.refusing = false;
    const prepend = Element.prototype.replaceChildren;
    Element.prototype.replaceChildren = function (...nodes) {
      if (window.refusing) throw new Error('patched'); return prepend.apply(this, nodes); }; });`,
} as const;

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeInBrowser(`browser/banner on a page that throws in ${name}`, missingBrowser(name), () => {
    let shop: Shop;
    let browser: Browser;
    let visitor: Visitor;
    let page: Page;
    let banner: Banner;

    beforeAll(async () => {
      [shop, browser] = await Promise.all([startShop(), launch(name)]);
    });
    afterAll(async () => {
      await browser?.close();
      await shop?.close();
    });
    afterEach(async () => {
      await visitor?.leave();
    });

    it.each(Object.entries(THROWS))('%s', async (_what, script) => {
      visitor = await visit(browser);
      page = await visitor.tab(script);
      banner = bannerOf(page);
      await page.goto(shop.page({ snippet: { 'data-google-consent': `analytics_storage=${ANALYTICS}` } }));
      await banner.press('accept');
      await banner.waitFor('reopen');
      const { granted, principalId } = await banner.state();
      expect(granted).toHaveLength(2);
      await page.evaluate('window.refusing = true');
      expect(await page.evaluate('gpd.consent.withdraw()')).toEqual({ outcome: 'recorded', problem: null });
      expect((await banner.state()).granted).toEqual([]);
      for (const purpose of [AGENT, ANALYTICS])
        expect(await shop.api.check(principalId ?? '', purpose)).toMatchObject({ reason: 'withdrawn' });
      expect(await page.evaluate('heard.at(-1)')).toBe('change | decided | ');
    });
  });
}
