import { describe, expect, it } from 'vitest';
import { DAY } from '../../src/lib/clock.ts';
import { bearer } from '../consent/app/support/api.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { ask } from '../support/http.ts';
import { describeBanner } from './support/banner-suite.ts';
import { ANALYTICS, bannerOf, DOMAIN, type ShopPage } from './support/shop.ts';

/**
 * No refusal is lost, wherever the record is stored. The other files have gpd's absence (banner-failing), a full storage, two tabs and
 * the back/forward cache (banner-hostile).
 */

const STORES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  localStorage: {},
  cookie: { 'data-store': 'cookie', 'data-domain': DOMAIN },
};

/** The browser forbids it, or an extension does. */
const NO_STORAGE =
  "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });";
const NO_COOKIE =
  "Object.defineProperty(Document.prototype, 'cookie', { configurable: true, get: () => '', set: () => {} });";
/** An extension that lets no script change a cookie. */
const FROZEN_COOKIE =
  "Object.defineProperty(Document.prototype, 'cookie', { configurable: true, get: Object.getOwnPropertyDescriptor(Document.prototype, 'cookie').get, set: () => {} })";
/** The page's requests to this path wait until it calls `send`. */
const hold = (
  path: string,
): string => `{ const real = fetch; window.fetch = (...call) => String(call[0]).endsWith('${path}')
  ? new Promise((go) => { window.send = () => go(real(...call)); }) : real(...call); }`;

describeBanner('banner loses no refusal', [], (at) => {
  async function enter(options: ShopPage, script = ''): Promise<string> {
    await at.enter(script);
    const snippet = { 'data-server': `http://localhost:${at.shop.api.gpd.port}`, ...options.snippet };
    const url = at.shop.page({ own: true, ...options, snippet }, 'www');
    await at.page.goto(url);
    return url;
  }
  const principal = async (): Promise<string> => (await at.banner.state()).principalId ?? '';
  const reason = async (id: string): Promise<string> => (await at.shop.api.check(id, ANALYTICS)).reason;
  const isRefused = (id: string) => expect.poll(() => reason(id), SEEN_WITHIN);
  /** The tenant changes what it asks. */
  async function reword(): Promise<void> {
    const { api } = at.shop;
    const headers = { ...bearer(api.keys.operator), 'content-type': 'application/json' };
    const purposes = [
      { id: ANALYTICS, title: 'Audience', description: `Words of ${Date.now()}`, gpc: 'ignore' },
    ];
    const body = JSON.stringify({ purposes });
    expect((await ask(api.gpd.url, '/v1/consent/purposes', { method: 'PUT', headers, body })).status).toBe(
      200,
    );
  }

  describe.each(Object.entries(STORES))('stored in %s', (_name, snippet) => {
    it('gpd is away, on this page and on the next, and then it is told', async () => {
      const url = await enter({ snippet });
      await at.banner.answer('accept');
      const id = await principal();
      await at.shop.stop();
      await at.page.goto(url);
      expect(await at.banner.state()).toMatchObject({ phase: 'unavailable' });
      expect(await at.page.evaluate('gpd.consent.withdraw()')).toMatchObject({ outcome: 'kept' });
      await at.shop.restart();
      await at.page.goto(url);
      expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
      await isRefused(id).toBe('withdrawn');
    });

    it('the words change before gpd hears of it: it is recorded, and the person is asked about the new words', async () => {
      const url = await enter({ snippet });
      await at.banner.answer('accept');
      const id = await principal();
      await at.page.evaluate(`${hold('/withdraw')}; gpd.consent.withdraw(); 0`);
      await at.page.waitForFunction('window.send');
      await reword();
      await at.page.goto(url);
      expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [], principalId: id });
      await isRefused(id).toBe('withdrawn');
      await at.banner.answer('reject');
      expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    });

    it('another tab refuses while this one grants', async () => {
      const url = await enter({ snippet });
      await at.banner.waitFor('accept');
      const tab = await at.visitor.tab();
      await tab.goto(url);
      const other = bannerOf(tab);
      // Firefox draws, and lets a test wait in, only the tab in front.
      await at.page.bringToFront();
      await at.page.evaluate(hold('/grant'));
      await at.banner.press('accept');
      await at.page.waitForFunction('window.send');
      await tab.bringToFront();
      await other.answer('reject');
      await at.page.bringToFront();
      await at.page.evaluate('send()');
      await at.page.waitForSelector('gpd-consent >>> .error', { hidden: true });
      const id = (await other.state()).principalId ?? '';
      await expect.poll(async () => (await at.banner.state()).granted, SEEN_WITHIN).toEqual([]);
      expect((await other.state()).granted).toEqual([]);
      await at.page.goto(url);
      expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [], principalId: id });
      expect(await reason(id)).not.toBe('granted');
      expect(
        await at.page.evaluate(
          "document.cookie.includes('gpd_consent') && JSON.parse(atob(document.cookie.match(/gpd_consent=[^.]+\\.([^.;]+)/)[1].replace(/-/g, '+').replace(/_/g, '/'))).p.length > 0",
        ),
      ).toBe(false);
    });

    it('nothing can be stored: gpd has it, and the next page grants nothing', async () => {
      const url = await enter({ snippet }, NO_STORAGE + NO_COOKIE);
      await at.banner.answer('accept');
      const id = await principal();
      expect(await at.page.evaluate('gpd.consent.withdraw()')).toMatchObject({ outcome: 'recorded' });
      expect(await reason(id)).toBe('withdrawn');
      await at.page.goto(url);
      expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    });
  });

  it.each([
    ['is silent for half a year, though a grant lasts 30 days', 182, 'decided'],
    ['asks again after it', 184, 'asking'],
  ])('after a refusal the banner %s', async (_what, days, phase) => {
    const url = await enter({});
    await at.banner.answer('reject');
    await at.page.evaluate(`{ const name = Object.keys(localStorage)[0]; const record = JSON.parse(localStorage[name]);
      for (const choice of Object.values(record.choices)) choice.at -= ${days * DAY};
      localStorage[name] = JSON.stringify(record); }`);
    await at.page.goto(url);
    expect(await at.banner.state()).toMatchObject({ phase, granted: [] });
  });

  it('the cookie is blocked: localStorage has it', async () => {
    const snippet = STORES['cookie'] ?? {};
    const url = await enter({ snippet }, NO_COOKIE);
    await at.banner.answer('reject');
    await at.page.goto(url);
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    expect(await at.banner.stored()).toBe(1);
  });

  it('the cookie cannot be changed any more: the next page refuses although the cookie says yes', async () => {
    const snippet = STORES['cookie'] ?? {};
    const url = await enter({ snippet });
    await at.banner.answer('accept');
    const id = await principal();
    await at.shop.stop();
    await at.page.evaluate(`${FROZEN_COOKIE}; 0`);
    expect(await at.page.evaluate('gpd.consent.withdraw()')).toMatchObject({ outcome: 'kept' });
    expect(await at.page.evaluate('document.cookie')).toContain('~G');
    await at.shop.restart();
    await at.page.goto(url);
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    await isRefused(id).toBe('withdrawn');
    await expect.poll(() => at.banner.stored(), SEEN_WITHIN).toBe(0);
  });
});
