import { expect, it } from 'vitest';
import { describeWithTool } from '../support/tools.ts';
import { useBanner } from './support/banner-suite.ts';
import { type BrowserName, missingBrowser } from './support/drivers.ts';
import { AGENT, ANALYTICS, bannerOf } from './support/shop.ts';
import { OLD_LIBRARY } from './support/trouble.ts';

/** A page whose own scripts throw where the banner calls them: a withdrawal reaches the ledger all the same. */

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

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeWithTool(`browser/banner on a page that throws in ${name}`, missingBrowser(name), () => {
    const at = useBanner(name);

    it.each(Object.entries(THROWS))('%s', async (_what, script) => {
      await at.enter(script);
      await at.page.goto(
        at.shop.page({ snippet: { 'data-google-consent': `analytics_storage=${ANALYTICS}` } }),
      );
      await at.banner.press('accept');
      await at.banner.waitFor('reopen');
      const { granted, principalId } = await at.banner.state();
      expect(granted).toHaveLength(2);
      await at.page.evaluate('window.refusing = true');
      expect(await at.page.evaluate('gpd.consent.withdraw()')).toEqual({
        outcome: 'recorded',
        problem: null,
      });
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
        await at.banner.press('accept');
        await at.banner.waitFor('reopen');
        expect(await at.page.evaluate('Object.hasOwn(window, "gpd")')).toBe(true);
        const { principalId } = await at.banner.state();
        expect(await at.shop.api.check(principalId ?? '')).toMatchObject({ allowed: true });
      },
    );

    it('an old library’s toJSON: what is granted elsewhere is withdrawn there, and the agent sends', async () => {
      await at.enter();
      await at.page.goto(at.shop.page());
      await at.banner.press('accept');
      await at.banner.waitFor('reopen');
      const { principalId } = await at.banner.state();
      at.page = await at.visitor.tab(OLD_LIBRARY);
      at.banner = bannerOf(at.page);
      await at.page.goto(at.shop.page());
      expect(await at.page.evaluate(`identify('http://localhost:${at.shop.api.gpd.port}')`)).toMatchObject({
        reason: 'ok',
      });
      expect(await at.page.evaluate('gpd.consent.withdraw()')).toEqual({
        outcome: 'recorded',
        problem: null,
      });
      expect(await at.shop.api.check(principalId ?? '')).toMatchObject({ reason: 'withdrawn' });
      at.page = await at.visitor.tab();
      at.banner = bannerOf(at.page);
      await at.page.goto(at.shop.page());
      expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [], principalId });
    });
  });
}
