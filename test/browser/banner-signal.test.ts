import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { describeInBrowser } from '../support/tools.ts';
import { type BrowserName, launch, missingBrowser, type Visitor, visit } from './support/drivers.ts';
import { AGENT, ANALYTICS, type Banner, bannerOf, type Shop, startShop } from './support/shop.ts';

/** Global Privacy Control: Firefox's own switch, and Chromium with the property that an extension gives it. */

const PROPERTY = "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true });";
const PREFERENCES = {
  'privacy.globalprivacycontrol.enabled': true,
  'privacy.globalprivacycontrol.functionality.enabled': true,
};

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeInBrowser(`browser/banner under Global Privacy Control in ${name}`, missingBrowser(name), () => {
    let shop: Shop;
    let plain: Shop;
    let browser: Browser;
    let visitor: Visitor;
    let page: Page;
    let banner: Banner;

    beforeAll(async () => {
      [shop, plain, browser] = await Promise.all([
        startShop(),
        startShop({ analytics: false }),
        launch(name, PREFERENCES),
      ]);
    });
    afterAll(async () => {
      await browser?.close();
      await Promise.all([shop?.close(), plain?.close()]);
    });
    afterEach(async () => {
      await visitor?.leave();
    });

    async function open(url: string): Promise<void> {
      visitor = await visit(browser);
      page = await visitor.tab(name === 'chromium' ? PROPERTY : undefined);
      banner = bannerOf(page);
      await page.goto(url);
    }
    const identify = (of: Shop, receipt?: object): Promise<object> =>
      page.evaluate(
        `identify('http://localhost:${of.api.gpd.port}', ${JSON.stringify(receipt)})`,
      ) as Promise<object>;

    it('is an answer already: nobody is asked, a chip says so, and nothing is kept', async () => {
      await open(plain.page());
      expect(await banner.state()).toMatchObject({
        phase: 'decided',
        gpc: true,
        granted: [],
        purposes: [{ id: AGENT, status: 'gpc-opt-out' }],
      });
      expect(await banner.shown('banner')).toBe(false);
      expect(await banner.text('.reopen .chip')).toBe('Global Privacy Control honoured');
      expect(await banner.stored()).toBe(0);
      expect(await banner.receipt()).toMatchObject({ purposes: [], gpc: true });
      expect(await identify(plain)).toMatchObject({ sent: false, reason: 'gpc' });
    });

    it('what it opts out of cannot be ticked, and the settings say why', async () => {
      await open(plain.page());
      await banner.press('reopen');
      expect(
        await banner.inside("return root.querySelector('input').matches(':disabled:not(:checked)')"),
      ).toBe(true);
      expect(await banner.text('.purposes')).toContain('Your browser asks sites not to do this');
      await banner.press('accept-all');
      await banner.waitGone('save');
      expect((await banner.state()).granted).toEqual([]);
      expect(await banner.stored()).toBe(0);
    });

    it('other purposes are asked, and a choice there makes none of the signal', async () => {
      await open(shop.page());
      await banner.waitFor('banner');
      expect(await banner.text('.layer')).toContain('Audience measurement');
      expect(await banner.text('.layer')).not.toContain('Device identification');
      expect(await banner.text('.layer .chip')).toBe('Global Privacy Control honoured');
      await banner.press('accept');
      await banner.waitFor('reopen');
      const { granted, principalId } = await banner.state();
      expect(granted).toEqual([ANALYTICS]);
      const kept = (await page.evaluate('JSON.parse(Object.values(localStorage)[0]).choices')) as object;
      expect(Object.keys(kept)).toEqual([ANALYTICS]);
      expect(await shop.api.check(principalId ?? '', ANALYTICS)).toMatchObject({ allowed: true });
      const history = await shop.api.post('/v1/consent/history', { principalId });
      expect(history.json()).toMatchObject({ events: [{ purpose: ANALYTICS, gpc: true }] });
    });

    if (name === 'chromium') {
      it('switched on after a grant: the ledger is told of the signal; switched off again: asked again', async () => {
        visitor = await visit(browser);
        page = await visitor.tab();
        banner = bannerOf(page);
        const url = plain.page();
        await page.goto(url);
        await banner.press('accept');
        await banner.waitFor('reopen');
        const before = await banner.receipt();
        const id = before.principalId ?? '';

        const script = await page.evaluateOnNewDocument(PROPERTY);
        await page.goto(url);
        expect(await banner.state()).toMatchObject({ phase: 'decided', granted: [], gpc: true });
        await vi.waitFor(async () =>
          expect(await plain.api.check(id)).toMatchObject({ reason: 'gpc-opt-out' }),
        );
        expect(await identify(plain, { ...before, gpc: false })).toMatchObject({
          sent: false,
          reason: 'gpc',
        });
        const history = await plain.api.post('/v1/consent/history', { principalId: id });
        expect((history.json() as { events: { type: string }[] }).events.map(({ type }) => type)).toEqual([
          'consent.gpc-opt-out',
          'consent.granted',
        ]);

        await page.removeScriptToEvaluateOnNewDocument(script.identifier);
        await page.goto(url);
        expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [], gpc: false });
        await banner.press('accept');
        await banner.waitFor('reopen');
        expect(await plain.api.check(id)).toMatchObject({ allowed: true });
        expect(await identify(plain)).toMatchObject({ status: 200 });
      });

      it('that only a header carries is heeded too', async () => {
        visitor = await visit(browser);
        page = await visitor.tab();
        banner = bannerOf(page);
        await page.setExtraHTTPHeaders({ 'sec-gpc': '1' });
        await page.goto(plain.page());
        expect(await banner.state()).toMatchObject({ phase: 'decided', gpc: true, granted: [] });
      });
    }
  });
}
