import { expect, it } from 'vitest';
import { describeWithTool } from '../support/tools.ts';
import { useBanner } from './support/banner-suite.ts';
import { type BrowserName, missingBrowser } from './support/drivers.ts';
import { AGENT, ANALYTICS } from './support/shop.ts';

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
  });
}
