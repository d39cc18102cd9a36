import { expect, it } from 'vitest';
import { DAY } from '../../src/lib/clock.ts';
import { describeWithTool } from '../support/tools.ts';
import { useBanner } from './support/banner-suite.ts';
import { type BrowserName, missingBrowser } from './support/drivers.ts';
import { ANALYTICS, bannerOf } from './support/shop.ts';
import { clockAhead } from './support/trouble.ts';

/** A person whose clock is wrong, on a page of another origin than gpd's: identified, and asked when the ledger says so. */

const MINUTE = 60_000;

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeWithTool(`browser/wrong clock in ${name}`, missingBrowser(name), () => {
    const at = useBanner(name);

    /** @param script runs before the page does */
    async function open(script: string): Promise<void> {
      await at.enter(script);
      await at.page.goto(at.shop.page());
    }
    const identify = (): Promise<unknown> =>
      at.page.evaluate(`identify('http://localhost:${at.shop.api.gpd.port}')`) as Promise<unknown>;
    const keysAsked = (): Promise<unknown> =>
      at.page.evaluate(
        "performance.getEntriesByType('resource').filter((entry) => entry.name.includes('pubkey')).length",
      );

    it.each([
      ['ten minutes fast', 10 * MINUTE],
      ['ten minutes slow', -10 * MINUTE],
      ['a year fast', 365 * DAY],
    ])('%s: identified, and from then on at once', async (_what, ms) => {
      await open(clockAhead(ms));
      const pending = identify();
      await at.banner.press('accept');
      expect(await pending).toEqual({ sent: true, reason: 'ok', status: 200 });
      expect(await keysAsked()).toBe(2);
      expect(await identify()).toEqual({ sent: true, reason: 'ok', status: 200 });
      expect(await keysAsked()).toBe(2);
    });

    it.each([
      ['a year fast', 365 * DAY],
      ['a year slow', -365 * DAY],
    ])('a grant made %s ends when the ledger says so, and is not asked again before', async (_what, ms) => {
      await open(clockAhead(ms));
      await at.banner.press('accept');
      await at.banner.waitFor('reopen');
      for (const script of [clockAhead(ms), '']) {
        at.page = await at.visitor.tab(script);
        at.banner = bannerOf(at.page);
        await at.page.goto(at.shop.page());
        const { phase, granted, purposes } = await at.banner.state();
        expect({ phase, granted: granted.length }).toEqual({ phase: 'decided', granted: 2 });
        const ends = purposes.find(({ id }) => id === ANALYTICS)?.until ?? 0;
        const now = Date.now();
        expect(Math.round((ends - now) / DAY)).toBe(30);
      }
    });
  });
}
