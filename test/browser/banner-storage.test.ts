import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeInBrowser } from '../support/tools.ts';
import { type BrowserName, launch, missingBrowser, type Visitor, visit } from './support/drivers.ts';
import { AGENT, ANALYTICS, type Banner, bannerOf, type Shop, startShop } from './support/shop.ts';
import { FILL } from './support/trouble.ts';

/** A browser that cannot keep the last answer keeps no older one: nothing is granted that was taken back. */

const RECORD = "Object.keys(localStorage).filter((name) => name.startsWith('gpd-consent:')).length";
const BLOCKED = `Object.defineProperty(window, 'localStorage', {
  get() { throw new DOMException('The operation is insecure.', 'SecurityError'); } });`;

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeInBrowser(`browser/banner and full storage in ${name}`, missingBrowser(name), () => {
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
      await shop.restart();
    });

    /** @param before runs on the page before the person answers */
    async function accept(before = ''): Promise<{ url: string; id: string }> {
      visitor = await visit(browser);
      page = await visitor.tab();
      banner = bannerOf(page);
      const snippet = { 'data-server': `http://localhost:${shop.api.gpd.port}` };
      const url = shop.page({ own: true, cached: true, snippet });
      await page.goto(url);
      await page.evaluate(before);
      await banner.press('accept');
      await banner.waitFor('reopen');
      const { granted, principalId } = await banner.state();
      expect(granted).toHaveLength(2);
      return { url, id: principalId ?? '' };
    }

    it('one of two purposes withdrawn: it stays withdrawn here, and the next page asks', async () => {
      const { url, id } = await accept();
      await page.evaluate(FILL);
      expect(await page.evaluate(`gpd.consent.withdraw('${ANALYTICS}')`)).toEqual({
        outcome: 'recorded',
        problem: null,
      });
      expect(await shop.api.check(id, ANALYTICS)).toMatchObject({ reason: 'withdrawn' });
      expect((await banner.state()).granted).toEqual([AGENT]);
      expect((await banner.receipt()).purposes).toEqual([AGENT]);
      expect(await page.evaluate(RECORD)).toBe(0);
      await page.goto(url);
      expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    });

    it('a withdrawal that the server could not be told of reaches it from the next page', async () => {
      const { url, id } = await accept();
      await page.evaluate(FILL);
      await shop.stop();
      expect(await page.evaluate(`gpd.consent.withdraw('${ANALYTICS}')`)).toEqual({
        outcome: 'kept',
        problem: 'unreachable',
      });
      expect((await banner.state()).granted).toEqual([AGENT]);
      await shop.restart();
      await page.goto(url);
      expect(await banner.state()).toMatchObject({ granted: [] });
      await expect
        .poll(() => shop.api.check(id, ANALYTICS), SEEN_WITHIN)
        .toMatchObject({ reason: 'withdrawn' });
    });

    it('the other tab does not bring back what was taken away', async () => {
      const { url } = await accept();
      const second = await visitor.tab();
      await second.goto(url);
      const other = bannerOf(second);
      expect((await other.state()).granted).toHaveLength(2);
      await page.evaluate(FILL);
      await page.evaluate(`gpd.consent.withdraw('${ANALYTICS}')`);
      await expect.poll(async () => (await other.state()).granted, SEEN_WITHIN).toEqual([]);
      await second.evaluate(`gpd.consent.withdraw('${AGENT}')`);
      expect((await other.state()).granted).toEqual([]);
    });

    it('storage forbidden: the answer holds for this page', async () => {
      const { url } = await accept(BLOCKED);
      await page.evaluate(`gpd.consent.withdraw('${ANALYTICS}')`);
      expect((await banner.state()).granted).toEqual([AGENT]);
      await page.goto(url);
      expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    });

    it('a page from the back/forward cache grants nothing that a later page refused', async () => {
      await accept(
        `addEventListener('pageshow', (event) => { window.restored = event.persisted; }); ${FILL}`,
      );
      await page.goto(shop.page());
      await banner.press('reject');
      await banner.waitFor('reopen');
      await page.evaluate('history.back()');
      await expect.poll(() => page.evaluate('window.restored').catch(() => null), SEEN_WITHIN).toBe(true);
      expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [] });
      expect(await page.evaluate('heard.at(-1)')).toBe('change | asking | ');
    });
  });
}
