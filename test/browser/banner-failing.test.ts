import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeInBrowser } from '../support/tools.ts';
import { type BrowserName, launch, missingBrowser, type Visitor, visit } from './support/drivers.ts';
import {
  AGENT,
  ANALYTICS,
  type Banner,
  bannerOf,
  type Shop,
  type ShopPage,
  startShop,
} from './support/shop.ts';

/** The server is away, silent, or says no: nothing is collected, the page works, the choice is asked again. */

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeInBrowser(`browser/banner without its server in ${name}`, missingBrowser(name), () => {
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

    async function open(options: ShopPage): Promise<string> {
      visitor = await visit(browser);
      page = await visitor.tab(`window.faults = [];
        for (const name of ['error', 'unhandledrejection']) addEventListener(name, (e) => faults.push(name + ' ' + e.message));`);
      banner = bannerOf(page);
      const url = shop.page(options);
      await page.goto(url);
      return url;
    }
    const gpdUrl = (): string => `http://localhost:${shop.api.gpd.port}`;

    async function expectUnharmed(): Promise<void> {
      expect(await banner.receipt()).toMatchObject({ purposes: [] });
      expect(await page.evaluate("document.querySelector('gpd-consent')")).toBeNull();
      expect(await banner.stored()).toBe(0);
      expect(await page.evaluate('faults')).toEqual([]);
      await page.click('#first');
      expect(page.url()).toContain('#end');
    }

    it('away: the page stands, nothing is granted; back: the opener asks', async () => {
      await shop.stop();
      await open({ own: true, snippet: { 'data-server': gpdUrl() } });
      expect(await banner.state()).toMatchObject({
        phase: 'unavailable',
        problem: 'unreachable',
        granted: [],
      });
      await expectUnharmed();
      expect(await page.evaluate('gpd.consent.withdraw()')).toMatchObject({ outcome: 'failed' });
      await shop.restart();
      await page.click('#opener');
      await banner.waitFor('save');
      await banner.press('reject-all');
      await banner.waitFor('reopen');
      expect(await banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    });

    it('silent: after six seconds nothing is granted', async () => {
      const silent: Server = createServer(() => {}).listen(0, '127.0.0.1');
      await new Promise((resolve) => silent.once('listening', resolve));
      const address = `http://localhost:${(silent.address() as AddressInfo).port}`;
      const begun = Date.now();
      await open({ own: true, connect: address, snippet: { 'data-server': address } });
      expect(await banner.state()).toMatchObject({ phase: 'unavailable', problem: 'unreachable' });
      const took = Date.now() - begun;
      expect(took).toBeGreaterThan(5900);
      expect(took).toBeLessThan(12_000);
      await expectUnharmed();
      silent.close();
    });

    it('blocked: the page’s policy lets nothing through', async () => {
      await open({ own: true, snippet: { 'data-server': 'https://blocked.example' } });
      expect(await banner.state()).toMatchObject({ phase: 'unavailable', problem: 'unreachable' });
      await expectUnharmed();
    });

    it('a key that is none, or none at all: said in the state, and nothing shown', async () => {
      await open({ snippet: { 'data-key': 'gpd_pk_nonsense' } });
      expect(await banner.state()).toMatchObject({ phase: 'unavailable', problem: 'unauthenticated' });
      await expectUnharmed();
      await visitor.leave();
      await open({ snippet: { 'data-key': '' } });
      expect(await banner.state()).toMatchObject({ phase: 'unavailable', problem: 'no-key' });
      await expectUnharmed();
    });

    it('no secure context: nobody is asked, because nobody could be named', async () => {
      visitor = await visit(browser);
      page = await visitor.tab(
        "Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined });",
      );
      banner = bannerOf(page);
      await page.goto(shop.page());
      expect(await banner.state()).toMatchObject({ phase: 'unavailable', problem: 'insecure-context' });
      expect(await banner.receipt()).toMatchObject({ purposes: [] });
    });

    it('away when Accept is pressed: said so, nothing granted, asked on; back: it is taken', async () => {
      await open({ own: true, snippet: { 'data-server': gpdUrl() } });
      await banner.waitFor('banner');
      await shop.stop();
      await banner.press('accept');
      await page.waitForSelector('gpd-consent >>> .error', { visible: true });
      expect(await banner.text('.layer .error')).toContain('nothing is collected');
      expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [] });
      expect(await banner.stored()).toBe(0);
      await shop.restart();
      await banner.press('accept');
      await banner.waitFor('reopen');
      expect((await banner.state()).granted.sort()).toEqual([ANALYTICS, AGENT].sort());
    });

    it('away when a withdrawal is made: in force here at once, and told on the next page', async () => {
      const url = await open({ own: true, snippet: { 'data-server': gpdUrl() } });
      await banner.press('accept');
      await banner.waitFor('reopen');
      const id = (await banner.state()).principalId ?? '';
      await shop.stop();
      expect(await page.evaluate('gpd.consent.withdraw()')).toEqual({
        outcome: 'kept',
        problem: 'unreachable',
      });
      expect((await banner.receipt()).purposes).toEqual([]);
      await shop.restart();
      expect(await shop.api.check(id)).toMatchObject({ allowed: true });
      await page.goto(url);
      await vi.waitFor(
        async () => expect(await shop.api.check(id)).toMatchObject({ reason: 'withdrawn' }),
        SEEN_WITHIN,
      );
      await vi.waitFor(async () => {
        expect(await page.evaluate('JSON.parse(Object.values(localStorage)[0]).pending')).toEqual([]);
      }, SEEN_WITHIN);
      const { events } = (await shop.api.post('/v1/consent/history', { principalId: id })).json() as {
        events: unknown[];
      };
      expect(events).toHaveLength(4);
    });

    it('a refusal that the server was never told of stands before a later grant', async () => {
      await open({ own: true, snippet: { 'data-server': gpdUrl() } });
      await banner.waitFor('banner');
      await shop.stop();
      await banner.press('reject');
      await banner.waitFor('reopen');
      await vi.waitFor(async () => expect(await banner.text('.heard')).toContain('in force here'));
      await banner.press('reopen');
      await banner.press('accept-all');
      await page.waitForSelector('gpd-consent >>> dialog .error', { visible: true });
      expect((await banner.state()).granted).toEqual([]);
      await shop.restart();
      await banner.press('accept-all');
      await banner.waitGone('save');
      const { principalId } = await banner.state();
      const { events } = (await shop.api.post('/v1/consent/history', { principalId })).json() as {
        events: { type: string }[];
      };
      expect(events.map(({ type }) => type)).toEqual([
        'consent.granted',
        'consent.granted',
        'consent.denied',
        'consent.denied',
      ]);
    });

    it('the origin is not registered any more: nothing is granted, and that is said', async () => {
      const lets = async (): Promise<boolean> => {
        const headers = { origin: shop.origin };
        const reply = await shop.api.get('/v1/consent/banner', shop.api.keys.publishable, headers);
        return reply.headers['access-control-allow-origin'] !== undefined;
      };
      const register = async (origin: string, known: boolean): Promise<void> => {
        await shop.api.gpd.json(['tenants', 'set', 'shop', `origins=${origin}`]);
        await vi.waitFor(async () => expect(await lets()).toBe(known), SEEN_WITHIN);
      };
      await open({});
      await banner.waitFor('banner');
      await register('https://elsewhere.example', false);
      await banner.press('accept');
      await page.waitForSelector('gpd-consent >>> .error', { visible: true });
      expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [] });
      expect(await banner.stored()).toBe(0);
      await register(shop.origin, true);
    });

    it('a browser that keeps nothing is asked again on the next page', async () => {
      visitor = await visit(browser);
      page = await visitor.tab(`for (const name of ['getItem', 'setItem'])
        Storage.prototype[name] = () => { throw new DOMException('no', 'SecurityError'); };`);
      banner = bannerOf(page);
      const url = shop.page();
      await page.goto(url);
      await banner.press('accept');
      await banner.waitFor('reopen');
      expect((await banner.receipt()).purposes).toHaveLength(2);
      await page.goto(url);
      expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    });
  });
}
