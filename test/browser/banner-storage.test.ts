import { expect, it } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import { findChromium } from './support/chromium.ts';
import { AGENT, ANALYTICS, bannerOf } from './support/shop.ts';
import { FILL } from './support/trouble.ts';

/** A browser that cannot keep the last answer keeps no older one: nothing is granted that was taken back. */

// Its shell has no back/forward cache.
describeBanner('banner and full storage', [{}, findChromium()], (at) => {
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
