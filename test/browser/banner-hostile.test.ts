import { expect, it } from 'vitest';
import { DAY } from '../../src/lib/clock.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import { findChromium } from './support/chromium.ts';
import { AGENT, ANALYTICS, bannerOf } from './support/shop.ts';
import { clockAhead, FILL, OLD_LIBRARY } from './support/trouble.ts';

/** The page's scripts, the clock or the storage are in the way: nothing is granted that was taken back. */

const THROWS = {
  'a data layer': `window.dataLayer = { push() { throw new Error('tag manager'); } };`,
  'a body that takes no children': `addEventListener('DOMContentLoaded', () => {
    window.refusing = false;
    const prepend = Element.prototype.replaceChildren;
    Element.prototype.replaceChildren = function (...nodes) {
      if (window.refusing) throw new Error('patched'); return prepend.apply(this, nodes); }; });`,
} as const;

/** They hide what `document` and `window` have by that name. */
const CLOBBERED = [
  '<img name="body"><img name="documentElement"><img name="activeElement"><img name="readyState">',
  '<img name="currentScript" src="data:," data-key="gpd_pk_evil">',
  '<img name="querySelectorAll"><img name="createElement"><img name="addEventListener"><img name="dispatchEvent">',
  '<form id="gpd"><input name="consent"></form>',
  '<a id="gpd"></a><a id="gpd" name="consent" href="https://evil.example/"></a>',
];

// Its shell has no back/forward cache.
describeBanner('banner on a page that throws', [{}, findChromium()], (at) => {
  it.each(Object.entries(THROWS))('%s', async (_what, script) => {
    await at.enter(script);
    await at.page.goto(
      at.shop.page({ snippet: { 'data-google-consent': `analytics_storage=${ANALYTICS}` } }),
    );
    await at.banner.answer('accept');
    const { granted, principalId } = await at.banner.state();
    expect(granted).toHaveLength(2);
    await at.page.evaluate('window.refusing = true');
    expect(await at.page.evaluate('gpd.consent.withdraw()')).toEqual({ outcome: 'recorded', problem: null });
    expect((await at.banner.state()).granted).toEqual([]);
    for (const purpose of [AGENT, ANALYTICS])
      expect(await at.shop.api.check(principalId ?? '', purpose)).toMatchObject({ reason: 'withdrawn' });
    expect(await at.page.evaluate('heard.at(-1)')).toBe('change | decided | ');
  });

  it.each(CLOBBERED)(
    'elements that a visitor wrote, %s: it asks, and the answer is recorded',
    async (body) => {
      await at.enter();
      await at.page.goto(at.shop.page({ body }));
      await at.banner.answer('accept');
      expect(await at.page.evaluate('Object.hasOwn(window, "gpd")')).toBe(true);
      const { principalId } = await at.banner.state();
      expect(await at.shop.api.check(principalId ?? '')).toMatchObject({ allowed: true });
    },
  );

  it.each([365 * DAY, -365 * DAY])(
    'a clock %d ms ahead: identified, and asked again when the ledger says so and not before',
    async (ms) => {
      await at.enter(clockAhead(ms));
      await at.page.goto(at.shop.page());
      await at.banner.answer('accept');
      const identify = `identify('http://localhost:${at.shop.api.gpd.port}')`;
      for (const _time of ['with a correction', 'at once'])
        expect(await at.page.evaluate(identify)).toEqual({ sent: true, reason: 'ok', status: 200 });
      const keysAsked =
        "performance.getEntriesByType('resource').filter((entry) => entry.name.includes('pubkey')).length";
      expect(await at.page.evaluate(keysAsked)).toBe(2);
      for (const script of [clockAhead(ms), '']) {
        at.page = await at.visitor.tab(script);
        at.banner = bannerOf(at.page);
        await at.page.goto(at.shop.page());
        const { phase, granted, purposes } = await at.banner.state();
        expect({ phase, granted: granted.length }).toEqual({ phase: 'decided', granted: 2 });
        const ends = purposes.find(({ id }) => id === ANALYTICS)?.until ?? 0;
        expect(Math.round((ends - Date.now()) / DAY)).toBe(30);
      }
    },
  );

  it('an old library’s toJSON: what is granted elsewhere is withdrawn there, and the agent sends', async () => {
    await at.enter();
    await at.page.goto(at.shop.page());
    await at.banner.answer('accept');
    const { principalId } = await at.banner.state();
    at.page = await at.visitor.tab(OLD_LIBRARY);
    at.banner = bannerOf(at.page);
    await at.page.goto(at.shop.page());
    expect(await at.page.evaluate(`identify('http://localhost:${at.shop.api.gpd.port}')`)).toMatchObject({
      reason: 'ok',
    });
    expect(await at.page.evaluate('gpd.consent.withdraw()')).toEqual({ outcome: 'recorded', problem: null });
    expect(await at.shop.api.check(principalId ?? '')).toMatchObject({ reason: 'withdrawn' });
    at.page = await at.visitor.tab();
    at.banner = bannerOf(at.page);
    await at.page.goto(at.shop.page());
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [], principalId });
  });

  /** @param before runs on the page before the person answers */
  async function accept(before = ''): Promise<{ url: string; id: string }> {
    await at.enter();
    const snippet = { 'data-server': `http://localhost:${at.shop.api.gpd.port}` };
    const url = at.shop.page({ own: true, cached: true, snippet });
    await at.page.goto(url);
    await at.page.evaluate(before);
    await at.banner.answer('accept');
    const { granted, principalId } = await at.banner.state();
    expect(granted).toHaveLength(2);
    return { url, id: principalId ?? '' };
  }

  it('the other tab does not bring back what was taken away', async () => {
    const { url } = await accept();
    const second = await at.visitor.tab();
    await second.goto(url);
    const other = bannerOf(second);
    expect((await other.state()).granted).toHaveLength(2);
    await at.page.evaluate(FILL);
    await at.page.evaluate(`gpd.consent.withdraw('${ANALYTICS}')`);
    await expect.poll(async () => (await other.state()).granted, SEEN_WITHIN).toEqual([]);
    await second.evaluate(`gpd.consent.withdraw('${AGENT}')`);
    expect((await other.state()).granted).toEqual([]);
  });

  it('a page from the back/forward cache grants nothing that a later page refused', async () => {
    await accept(`addEventListener('pageshow', (event) => { window.restored = event.persisted; }); ${FILL}`);
    await at.page.goto(at.shop.page());
    await at.banner.answer('reject');
    await at.page.evaluate('history.back()');
    await expect.poll(() => at.page.evaluate('window.restored').catch(() => null), SEEN_WITHIN).toBe(true);
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    expect(await at.page.evaluate('heard.at(-1)')).toBe('change | asking | ');
  });
});
