import type { Browser, KeyInput, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeInBrowser } from '../support/tools.ts';
import { type BrowserName, launch, missingBrowser, type Visitor, visit } from './support/drivers.ts';
import {
  AGENT,
  ANALYTICS,
  type Banner,
  bannerOf,
  GATED,
  type Shop,
  type ShopPage,
  startShop,
} from './support/shop.ts';

/** The journeys of a visitor, on a page of another origin under a strict policy, against the built server. */

const DAY_MS = 86_400_000;

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeInBrowser(`browser/banner in ${name}`, missingBrowser(name), () => {
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

    async function open(options: ShopPage = {}, script?: string): Promise<string> {
      visitor = await visit(browser);
      page = await visitor.tab(script);
      banner = bannerOf(page);
      const url = shop.page(options);
      await page.goto(url);
      return url;
    }

    const gpdUrl = (): string => `http://localhost:${shop.api.gpd.port}`;
    const identify = (receipt?: object): Promise<{ sent: boolean; reason: string; status: number | null }> =>
      page.evaluate(`identify(${JSON.stringify(gpdUrl())}, ${JSON.stringify(receipt)})`) as never;
    const principal = async (): Promise<string> => (await banner.state()).principalId ?? '';
    const violations = (): Promise<unknown> => page.evaluate('window.violations');

    it('collects, keeps and says nothing before a choice', async () => {
      await open();
      await banner.waitFor('banner');
      expect(await banner.stored()).toBe(0);
      expect(await page.evaluate('document.cookie')).toBe('');
      expect(await visitor.context.cookies()).toEqual([]);
      expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [], principalId: null });
      // Not a trap, and not in the way: the keyboard stays where the page had it.
      expect(await page.evaluate('document.body.firstElementChild.localName')).toBe('gpd-consent');
      expect(await banner.focused()).toBe('BODY');
      const requests = (await page.evaluate(
        "performance.getEntriesByType('resource').map((e) => new URL(e.name).pathname)",
      )) as string[];
      expect(requests.sort()).toEqual(['/page.css', '/page.js', '/v1/consent/banner', '/v1/embed.js']);
      expect(await violations()).toEqual([]);
    });

    it('asks with three answers of one size and one style, and none ticked', async () => {
      await open();
      await banner.waitFor('banner');
      const looks =
        (await banner.inside(`return [...root.querySelectorAll('.layer .buttons button')].map((b) => {
        const { width, height } = b.getBoundingClientRect(); const s = getComputedStyle(b);
        return [Math.round(width), Math.round(height), s.color, s.backgroundColor, s.borderColor, s.fontWeight, s.fontSize].join(' '); });`)) as string[];
      expect(looks).toHaveLength(3);
      expect(new Set(looks).size).toBe(1);
      await banner.press('settings');
      expect(await banner.inside("return root.querySelectorAll('input').length")).toBe(2);
      expect(await banner.inside("return root.querySelectorAll('input:checked').length")).toBe(0);
    });

    it('grant: the ledger has it before the page, and the agent is answered 200', async () => {
      await open();
      const pending = identify();
      await banner.press('accept');
      expect(await pending).toEqual({ sent: true, reason: 'ok', status: 200 });
      const receipt = await banner.receipt();
      expect(receipt).toMatchObject({
        purposes: expect.arrayContaining([AGENT, ANALYTICS]),
        gpc: false,
        principalId: expect.stringMatching(/^b_[\w-]{43}$/),
      });
      expect(await shop.api.check(receipt.principalId ?? '')).toMatchObject({
        allowed: true,
        proof: receipt.proof,
      });
      expect(await shop.api.check(receipt.principalId ?? '', ANALYTICS)).toMatchObject({ allowed: true });
      const history = await shop.api.post('/v1/consent/history', { principalId: receipt.principalId });
      expect(history.json()).toMatchObject({ events: [{ source: 'browser' }, { source: 'browser' }] });
      // The region is gone, the button stays, and the keyboard is not lost.
      expect(await banner.shown('banner')).toBe(false);
      expect(await banner.shown('reopen')).toBe(true);
      await vi.waitFor(async () => expect(await banner.focused()).toBe('consent-reopen'));
      expect(await violations()).toEqual([]);
    });

    it('reject: the agent’s gate and the server both refuse, and it is remembered', async () => {
      const url = await open();
      await banner.press('reject');
      expect(await identify()).toMatchObject({ sent: false, reason: 'consent-missing' });
      const receipt = await banner.receipt();
      expect(receipt.purposes).toEqual([]);
      // Around the agent's gate: the server refuses by its own ledger.
      expect(await identify({ ...receipt, purposes: [AGENT] })).toEqual({
        sent: true,
        reason: 'consent-missing',
        status: 451,
      });
      const id = await principal();
      await vi.waitFor(async () => {
        expect(await shop.api.check(id)).toMatchObject({ allowed: false, reason: 'denied' });
      });
      await page.goto(url);
      expect(await banner.state()).toMatchObject({ phase: 'decided', granted: [] });
      expect(await banner.shown('banner')).toBe(false);
      expect(await banner.shown('reopen')).toBe(true);
    });

    it('withdraw: 451 at once, for the receipt of a minute ago too', async () => {
      await open();
      await banner.press('accept');
      await banner.waitFor('reopen');
      const before = await banner.receipt();
      expect(await identify(before)).toMatchObject({ status: 200 });
      expect(await page.evaluate('gpd.consent.withdraw()')).toEqual({ outcome: 'recorded', problem: null });
      expect(await identify(before)).toEqual({ sent: true, reason: 'consent-missing', status: 451 });
      expect(await identify()).toMatchObject({ sent: false, reason: 'consent-missing' });
      expect(await shop.api.check(before.principalId ?? '')).toMatchObject({ reason: 'withdrawn' });
      expect(await banner.shown('reopen')).toBe(true);
    });

    it('withdraws purpose by purpose, as easily as it granted', async () => {
      await open();
      await banner.press('accept');
      await banner.press('reopen');
      expect(
        await banner.inside("return [...root.querySelectorAll('input')].every((box) => box.checked)"),
      ).toBe(true);
      await banner.tick(ANALYTICS);
      await banner.press('save');
      await banner.waitGone('save');
      const { granted, principalId } = await banner.state();
      expect(granted).toEqual([AGENT]);
      expect(await shop.api.check(principalId ?? '', ANALYTICS)).toMatchObject({ reason: 'withdrawn' });
      expect(await shop.api.check(principalId ?? '')).toMatchObject({ allowed: true });
    });

    it('re-open after a refusal: the answer can be another one', async () => {
      await open();
      await banner.press('reject');
      await banner.press('reopen');
      await banner.tick(AGENT);
      await banner.press('save');
      await banner.waitGone('save');
      expect((await banner.state()).granted).toEqual([AGENT]);
      expect(await identify()).toMatchObject({ status: 200 });
    });

    it('is one grant over all pages of the site, and another tab hears of the withdrawal', async () => {
      const url = await open();
      await banner.press('accept');
      await banner.waitFor('reopen');
      const second = await visitor.tab();
      await second.goto(url);
      const other = bannerOf(second);
      expect(await other.state()).toMatchObject({ phase: 'decided' });
      expect((await other.receipt()).proof).toEqual((await banner.receipt()).proof);
      await second.evaluate('gpd.consent.withdraw()');
      await vi.waitFor(async () => expect((await banner.state()).granted).toEqual([]));
      await vi.waitFor(async () => expect(await page.evaluate('heard.at(-1)')).toBe('change | decided | '));
    });

    it('keyboard alone: Tab to the answers, Escape grants nothing, the focus comes back', async () => {
      await open();
      await banner.waitFor('banner');
      const tab = async (): Promise<string> => {
        await page.keyboard.press('Tab');
        return banner.focused();
      };
      expect([await tab(), await tab(), await tab()]).toEqual([
        'consent-accept',
        'consent-reject',
        'consent-settings',
      ]);
      await page.keyboard.press('Enter');
      await banner.waitFor('close');
      expect(await banner.focused()).toBe('settings-title');
      expect(await tab()).toBe('consent-close');
      await tab();
      await page.keyboard.press(' ' as KeyInput);
      await page.keyboard.press('Escape');
      await vi.waitFor(async () => expect(await banner.settingsOpen()).toBe(false));
      await vi.waitFor(async () => expect(await banner.focused()).toBe('consent-settings'));
      expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [] });
      expect(await banner.stored()).toBe(0);
      // Out of the region: no trap.
      expect(await tab()).toBe('first');
      await page.keyboard.down('Shift');
      for (let i = 0; i < 3; i += 1) await page.keyboard.press('Tab');
      await page.keyboard.up('Shift');
      expect(await banner.focused()).toBe('consent-accept');
      await page.keyboard.press('Escape');
      expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [] });
      await page.keyboard.press('Enter');
      await banner.waitFor('reopen');
      expect((await banner.state()).granted).toHaveLength(2);
      await vi.waitFor(async () => expect(await banner.focused()).toBe('consent-reopen'));
    });

    it('the page’s own opener has the focus again', async () => {
      await open();
      await banner.press('reject');
      await page.focus('#opener');
      await page.keyboard.press('Enter');
      await banner.waitFor('close');
      await page.keyboard.press('Escape');
      await vi.waitFor(async () => expect(await banner.focused()).toBe('opener'));
      await vi.waitFor(async () => {
        expect(await page.evaluate('heard.slice(-2)')).toEqual(['open | decided | ', 'close | decided | ']);
      });
    });

    it('what is focused below the region is scrolled above it', async () => {
      await open();
      await banner.waitFor('banner');
      await page.focus('#end');
      const [link, region] = (await page.evaluate(`[document.getElementById('end'),
        document.querySelector('gpd-consent').shadowRoot.querySelector('.layer')].map((e) => e.getBoundingClientRect().toJSON())`)) as [
        { bottom: number },
        { top: number },
      ];
      expect(link.bottom).toBeLessThanOrEqual(region.top);
    });

    it('runs gated scripts once their purposes are granted, in their order and not before', async () => {
      await open({ body: GATED });
      await banner.press('settings');
      expect(await page.evaluate('window.gated ?? null')).toBeNull();
      await banner.tick(ANALYTICS);
      await banner.press('save');
      await page.waitForFunction('window.gated?.length === 2');
      await banner.press('reopen');
      await banner.press('accept-all');
      await page.waitForFunction('window.gated?.length === 3');
      expect(await page.evaluate('window.gated.sort()')).toEqual(['both', 'file', 'inline']);
      expect(await violations()).toEqual([]);
    });

    it('Google Consent Mode is told only where the page asks for it', async () => {
      await open();
      await banner.waitFor('banner');
      expect(await page.evaluate("'dataLayer' in window")).toBe(false);
      await visitor.leave();
      const attribute = `analytics_storage=${ANALYTICS} ad_storage=ads`;
      await open({ snippet: { 'data-google-consent': attribute } });
      await banner.press('accept');
      await banner.waitFor('reopen');
      const commands = (await page.evaluate('dataLayer.map((c) => [...c])')) as unknown[][];
      expect(commands[0]).toEqual([
        'consent',
        'default',
        { analytics_storage: 'denied', ad_storage: 'denied', wait_for_update: 500 },
      ]);
      expect(commands.at(-1)).toEqual([
        'consent',
        'update',
        { analytics_storage: 'granted', ad_storage: 'denied' },
      ]);
      expect(await page.evaluate('Object.prototype.toString.call(dataLayer[0])')).toBe('[object Arguments]');
    });

    it('asks again when the choice expires, a refusal too, and says why', async () => {
      const url = await open();
      await banner.press('reject');
      await banner.waitFor('reopen');
      // Time passes by the server's clock; a device whose own is ahead is in wrong-clock.test.ts.
      await page.evaluate(`{ const [[name, text]] = Object.entries(localStorage); const record = JSON.parse(text);
        for (const choice of Object.values(record.choices)) { choice.at -= ${31 * DAY_MS}; choice.until -= ${31 * DAY_MS}; }
        localStorage.setItem(name, JSON.stringify(record)); }`);
      await page.goto(url);
      await banner.waitFor('banner');
      expect((await banner.state()).purposes.map(({ status }) => status).sort()).toEqual([
        'denied',
        'expired',
      ]);
      expect(await banner.text('.layer')).toContain('Your choice has expired');
      expect(await banner.text('.layer')).not.toContain('Device identification');
    });

    it('speaks the page’s language, and the tenant’s texts go in as text', async () => {
      await open({ language: 'de-AT' });
      await banner.waitFor('banner');
      expect(await banner.text('[data-testid="consent-reject"]')).toBe('Ablehnen');
      expect(await page.evaluate("document.querySelector('gpd-consent').lang")).toBe('de-AT');
      const files = "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('.json')).length";
      expect(await page.evaluate(files)).toBe(1);
      await visitor.leave();
      await open({ language: 'ar' });
      await banner.waitFor('banner');
      expect(await banner.inside("return getComputedStyle(root.querySelector('.layer')).direction")).toBe(
        'rtl',
      );
      await visitor.leave();
      await open({ language: 'tlh', snippet: { 'data-lang': 'fi' } });
      await banner.waitFor('banner');
      expect(await banner.text('[data-testid="consent-accept"]')).toBe('Hyväksy');
    });

    it('stands wherever the snippet stands, and a second one changes nothing', async () => {
      const script = `<script src="${gpdUrl()}/v1/embed.js" data-key="${shop.api.keys.publishable}"></script>`;
      await open({ head: script });
      await banner.waitFor('banner');
      expect(await page.evaluate("document.querySelectorAll('gpd-consent').length")).toBe(1);
      await visitor.leave();
      await open({ snippet: { async: '' } });
      await banner.waitFor('banner');
    });

    it('takes the pinned script by its integrity, and other bytes never run', async () => {
      const manifest = (await (await fetch(`${gpdUrl()}/v1/embed.json`)).json()) as {
        src: string;
        integrity: string;
      };
      const pinned = { src: `${gpdUrl()}${manifest.src}`, crossorigin: 'anonymous' };
      await open({ snippet: { ...pinned, integrity: manifest.integrity } });
      await banner.press('reject');
      await banner.waitFor('reopen');
      await visitor.leave();
      await open({ snippet: { ...pinned, integrity: manifest.integrity.replace(/.{8}$/, 'AAAAAAA=') } });
      expect(await page.evaluate("document.readyState + ' ' + typeof gpd")).toBe('complete undefined');
      expect(await page.evaluate("document.querySelector('h1').textContent")).toBe('Shop');
    });

    it('follows the theme that the snippet names', async () => {
      await open({ snippet: { 'data-theme': 'dark' } });
      await banner.waitFor('banner');
      const ground = "return getComputedStyle(root.querySelector('.layer')).backgroundColor";
      expect(await banner.inside(ground)).toBe('rgb(30, 32, 36)');
    });

    it('moves nothing on the page', async () => {
      const watch = `window.places = []; addEventListener('DOMContentLoaded', () => {
        const link = document.getElementById('first');
        const look = () => { places.push(link.getBoundingClientRect().top); requestAnimationFrame(look); }; look(); });`;
      await open({}, watch);
      await banner.press('accept');
      await banner.waitFor('reopen');
      expect(new Set((await page.evaluate('places')) as number[]).size).toBe(1);
    });

    it('links the agent’s request to a principal by a session, and says when it cannot', async () => {
      await open();
      await banner.press('accept');
      await banner.waitFor('reopen');
      expect(await identify()).toMatchObject({ status: 200 });
      const session = await shop.api.session('u-1');
      const link = (token: string): Promise<unknown> =>
        page.evaluate(`gpd.consent.link(${JSON.stringify(session)}, ${token})`);
      expect(await link("'no token'")).toMatchObject({
        linked: false,
        status: 401,
        error: 'unauthenticated',
      });
      expect(await link('token')).toEqual({
        linked: true,
        principalId: 'u-1',
        requestId: expect.stringMatching(/^req_/),
        linkedAt: expect.any(String),
      });
    });

    describe('a change of what is asked', () => {
      it('the tenant’s own words are shown as text, never as markup', async () => {
        const markup = '<img src=x onerror=alert(1)><b>Hello</b>';
        await shop.api.gpd.json([
          'tenants',
          'set',
          'shop',
          `banner.title=${markup}`,
          `banner.body=${markup}`,
        ]);
        await vi.waitFor(async () => {
          const shown = await shop.api.get('/v1/consent/banner', shop.api.keys.publishable);
          expect(shown.json()).toMatchObject({ title: markup });
        }, SEEN_WITHIN);
        await open();
        await banner.waitFor('banner');
        expect(await banner.text('h2')).toBe(markup);
        expect(await banner.inside("return root.querySelectorAll('img, b').length")).toBe(0);
        await shop.api.gpd.json(['tenants', 'set', 'shop', 'banner.title=', 'banner.body=']);
      });

      it('a new purpose is asked by itself, and what was granted stays granted', async () => {
        const url = await open();
        await banner.press('accept');
        await banner.waitFor('reopen');
        const ads = { id: 'ads', title: 'Advertising', gpc: 'opt-out', ttlDays: 10 };
        const put = await fetch(`${gpdUrl()}/v1/consent/purposes`, {
          method: 'PUT',
          headers: { authorization: `Bearer ${shop.api.keys.operator}`, 'content-type': 'application/json' },
          body: JSON.stringify({ purposes: [ads] }),
        });
        expect(put.status).toBe(200);
        await vi.waitFor(async () => {
          await page.goto(url);
          expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [ANALYTICS, AGENT] });
        }, SEEN_WITHIN);
        expect(await identify()).toMatchObject({ status: 200 });
        expect(await banner.text('.layer')).toContain('Something new');
        expect(await banner.text('.layer')).toContain('Advertising');
        await banner.press('reject');
        await banner.waitFor('reopen');
        expect((await banner.state()).granted).toEqual([ANALYTICS, AGENT]);
      });

      it('a material policy asks everybody again; until then nothing is granted', async () => {
        const url = await open();
        await banner.press('accept');
        await banner.waitFor('reopen');
        const before = await banner.receipt();
        await shop.api.post(
          '/v1/consent/policies',
          { text: 'Minor.', material: false },
          shop.api.keys.operator,
        );
        await vi.waitFor(async () => {
          const shown = await shop.api.get('/v1/consent/banner', shop.api.keys.publishable);
          expect(shown.json()).toMatchObject({ policy: { material: 0 } });
          expect((shown.json() as { policy: { version: number } }).policy.version).toBeGreaterThan(0);
        }, SEEN_WITHIN);
        await page.goto(url);
        expect(await banner.state()).toMatchObject({ phase: 'decided' });

        await shop.api.post(
          '/v1/consent/policies',
          { text: 'Material.', material: true },
          shop.api.keys.operator,
        );
        await vi.waitFor(async () => {
          await page.goto(url);
          expect(await banner.state()).toMatchObject({ phase: 'asking', granted: [] });
        }, SEEN_WITHIN);
        expect(await banner.text('.layer')).toContain('The policy has changed');
        expect(await identify(before)).toMatchObject({ status: 451 });
        await banner.press('accept');
        await banner.waitFor('reopen');
        const after = await banner.receipt();
        expect(after.version).toBe(2);
        expect(after.principalId).toBe(before.principalId);
        expect(await identify()).toMatchObject({ status: 200 });
      });
    });
  });
}
