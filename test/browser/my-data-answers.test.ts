import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import { describe, expect, it, vi } from 'vitest';
import { KID } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeInChromium } from './support/chromium.ts';
import { PROVEN, useMyData } from './support/my-data.ts';

/** The page explains an obstacle, has the usual look and saves its data to a file. */

describeInChromium('browser/my-data, all that it can say', () => {
  const at = useMyData();
  const { problems, open, look, forget, rows, text, says } = at;

  describe('a request about it that fails is told as what it is', () => {
    /** @param status null: without its cookies */
    async function failing(action: 'view' | 'forget', status: number | null): Promise<void> {
      await at.page.route('**/my-data', async (route) => {
        const request = route.request();
        const isForget = request.postData()?.includes('action=forget') === true;
        if (isForget !== (action === 'forget')) return route.continue();
        if (status === null) {
          const { cookie: _, ...headers } = await request.allHeaders();
          return route.fulfill({ response: await route.fetch({ headers: { ...headers, cookie: '' } }) });
        }
        return route.fulfill({ status, json: { error: 'any' } });
      });
    }
    const refused = (): Promise<string> => text('refused');

    it('view without the cookie: neither shown nor erasable, and why', async () => {
      await open();
      await failing('view', null);
      await look();
      await says(/did not keep the cookie/);
      expect(await at.page.getByTestId('nothing').count()).toBe(0);
      expect(await at.page.getByTestId('forget').isVisible()).toBe(false);
    });

    it('view with 503: not that nothing is kept', async () => {
      await open();
      await failing('view', 503);
      await look();
      await says(/did not say what else it holds/);
      expect(await at.page.getByTestId('nothing').count()).toBe(0);
    });

    it('from an address that the site did not register', async () => {
      await open();
      await at.page.goto(`${at.base.replace('localhost', '127.0.0.1')}/my-data?kid=${KID}`);
      await look();
      await says(/has not registered the address/);
      expect(await at.page.getByTestId('nothing').count()).toBe(0);
      expect(await at.page.getByTestId('forget').isVisible()).toBe(false);
    });

    it('forget without the cookie: nothing was erased, and what helps', async () => {
      await open();
      await look();
      const before = await rows('decisions');
      await failing('forget', null);
      await forget();
      await expect.poll(refused).toMatch(/^Nothing was erased/);
      expect(await rows('decisions')).toBe(before);
    });

    it('forget with 503: can be pressed again', async () => {
      await open();
      await look();
      await failing('forget', 503);
      await forget();
      await expect.poll(refused).toMatch(/did not confirm/);
      await at.page.unroute('**/my-data');
      await at.page.getByTestId('forget-now').click();
      await says(/^Only this visit was erased/);
    });
  });

  it.each([
    [-3 * 60, 'Your clock is about 3 hours slow.'],
    [60 * 24 * 365, 'Your clock is about 365 days fast.'],
  ])(
    'a clock %d minutes ahead: shows what is held, and says how far the clock is off',
    async (minutes, sentence) => {
      await open();
      await at.page.addInitScript(`{ const now = Date.now; Date.now = () => now() + ${minutes * 60_000}; }`);
      await at.page.reload();
      await look();
      await says(sentence);
      await forget();
      await says(/^Only this visit was erased/);
      await at.page.getByTestId('look').click();
      await says(sentence);
    },
  );

  it('is told of Global Privacy Control that came as a header alone', async () => {
    const before = await rows('decisions');
    await open({ extraHTTPHeaders: { 'sec-gpc': '1' } });
    await at.page.getByTestId('look').click();
    await says(/Global Privacy Control/);
    expect(await rows('decisions')).toBe(before);
  });

  it('is told that the site takes a recorded consent alone', async () => {
    await open();
    await at.page.goto(`${at.base}/my-data?kid=${PROVEN}`);
    await at.page.getByTestId('look').click();
    await says(/recorded consent/);
  });

  it('shows what tells the device apart where the tenant keeps summaries', async () => {
    await at.gpd.json(['tenants', 'set', KID, 'transparency.retain=summary']);
    await open({ colorScheme: 'dark', viewport: { width: 320, height: 700 } });
    await vi.waitFor(async () => {
      await look();
      expect(await at.page.getByTestId('view').count()).toBe(1);
    }, SEEN_WITHIN);
    const shown = await text('view');
    expect(shown).toMatch(/Graphics chip|Installed fonts|Processor cores/);
    expect(shown).toMatch(/not enough data/);
    expect(shown).toMatch(/some: uncommon/);
    expect(await at.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
    expect(problems).toEqual([]);
  });

  it('axe finds nothing, before, with all that is held, and after a forget', async () => {
    const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    await open({ viewport: { width: 390, height: 844 } });
    const violations = async (): Promise<string[]> => {
      await at.page.evaluate(axe);
      const found = (await at.page.evaluate('axe.run()')) as AxeResults;
      expect(found.passes.length).toBeGreaterThan(5);
      return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
    };
    expect(await violations()).toEqual([]);
    await look();
    await at.page.getByTestId('forget').locator('summary').click();
    expect(await violations()).toEqual([]);
    expect(await at.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await at.page.getByTestId('forget-now').click();
    await at.page.getByTestId('forgotten').waitFor();
    expect(await violations()).toEqual([]);
  });
});
