import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { describeInBrowser } from '../support/tools.ts';
import { type BrowserName, launch, missingBrowser, type Visitor, visit } from './support/drivers.ts';
import { AGENT, type Banner, bannerOf, GATED, type Shop, type ShopPage, startShop } from './support/shop.ts';

/** The banner and the page that it stands on: neither gets in the way of the other. */

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeInBrowser(`browser/banner on its page in ${name}`, missingBrowser(name), () => {
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

    async function open(options: ShopPage = {}): Promise<string> {
      visitor = await visit(browser);
      page = await visitor.tab(
        "window.faults = []; for (const name of ['error', 'unhandledrejection']) addEventListener(name, (e) => faults.push(String(e.reason ?? e.message)));",
      );
      banner = bannerOf(page);
      const url = shop.page(options);
      await page.goto(url);
      return url;
    }

    it('axe finds nothing, in the region, in the settings and after the answer', async () => {
      await open();
      await banner.waitFor('banner');
      await page.evaluate(AXE);
      const expectNothing = async (): Promise<void> => {
        const run = `axe.run({ include: [['gpd-consent']] }, { runOnly: ${JSON.stringify(TAGS)} })`;
        const { violations, passes } = (await page.evaluate(run)) as AxeResults;
        expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
        expect(passes.map(({ id }) => id)).toEqual(expect.arrayContaining(['button-name', 'target-size']));
      };
      await expectNothing();
      await banner.press('settings');
      await banner.waitFor('close');
      await expectNothing();
      await banner.press('close');
      await banner.press('reject');
      await banner.waitFor('reopen');
      await expectNothing();
    });

    it('the settings name the entry of a refusal on the page where it was made', async () => {
      await open();
      await banner.press('reject');
      const { principalId } = await vi.waitFor(async () => {
        expect(await banner.text('.heard')).toBe('Your choice was saved.');
        return banner.state();
      });
      const check = (await shop.api.check(principalId ?? '', AGENT)) as { proof: { seq: number } };
      await banner.press('reopen');
      await banner.waitFor('close');
      expect(await banner.text('.purposes')).toContain(`Record no. ${check.proof.seq}.`);
    });

    it('the last link of a page does not stay under the button', async () => {
      const away = '<p id="corner"><a id="imprint" href="#first">Imprint</a></p>';
      await open({ after: away });
      await banner.press('reject');
      await banner.waitFor('reopen');
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
      const reaches = `(() => { const box = document.getElementById('imprint').getBoundingClientRect();
        return document.elementFromPoint(box.left + 4, box.top + box.height / 2)?.id; })()`;
      await vi.waitFor(async () => expect(await page.evaluate(reaches)).toBe('imprint'));
      await page.evaluate('scrollTo(0, 0)');
      await page.focus('#imprint');
      const [link, button] = (await page.evaluate(`[document.getElementById('imprint'),
        document.querySelector('gpd-consent').shadowRoot.querySelector('.reopen')].map((e) => e.getBoundingClientRect().toJSON())`)) as [
        { bottom: number },
        { top: number },
      ];
      expect(link.bottom).toBeLessThanOrEqual(button.top);
    });

    it('a page that renews its body has the button again, and the settings open', async () => {
      await open();
      await banner.press('reject');
      await banner.waitFor('reopen');
      await page.evaluate("document.body.textContent = ''");
      await banner.waitFor('reopen');
      await banner.press('reopen');
      await banner.waitFor('close');
      await page.evaluate("document.body.replaceWith(document.createElement('body'))");
      await banner.waitFor('reopen');
      await banner.press('reopen');
      await banner.waitFor('close');
      expect(await banner.inside("return root.querySelector('dialog').matches(':modal')")).toBe(true);
      await page.evaluate("document.body.textContent = ''; gpd.consent.open()");
      await banner.waitFor('close');
      expect(await page.evaluate('faults')).toEqual([]);
    });

    it('text that a page sets small is not small here, and large text has the answers each in a row', async () => {
      await open({ head: '<link rel="stylesheet" href="/small.css">' });
      await banner.waitFor('banner');
      const size = "return getComputedStyle(root.querySelector('.layer p')).fontSize";
      expect(await banner.inside(size)).toBe('15px');
      await visitor.leave();
      const tops = `const tops = [...root.querySelectorAll('.layer .buttons button')].map((b) => Math.round(b.getBoundingClientRect().top));
        return new Set(tops).size`;
      const widths = `const widths = [...root.querySelectorAll('.layer .buttons button')].map((b) => Math.round(b.getBoundingClientRect().width));
        return new Set(widths).size`;
      const inSight = `const layer = root.querySelector('.layer').getBoundingClientRect();
        return [...root.querySelectorAll('.layer .buttons button')].every((b) => b.getBoundingClientRect().bottom < layer.bottom)`;
      for (const [width, rows] of [
        [1024, 1],
        [640, 3],
      ] as const) {
        await open({ language: 'de', head: '<link rel="stylesheet" href="/large.css">' });
        await page.setViewport({ width, height: 500 });
        await banner.waitFor('banner');
        expect([width, await banner.inside(tops), await banner.inside(widths)]).toEqual([width, rows, 1]);
        expect(await banner.inside(inSight)).toBe(true);
        if (width !== 640) await visitor.leave();
      }
    });

    it('a gated script that the page’s policy forbids stops nothing', async () => {
      const types = `<meta http-equiv="Content-Security-Policy" content="require-trusted-types-for 'script'">`;
      await open({ head: types, body: GATED });
      await banner.press('accept');
      await banner.waitFor('reopen');
      expect((await banner.receipt()).purposes).toContain(AGENT);
      const enforced = await page.evaluate("'trustedTypes' in window");
      expect(await page.evaluate('window.gated?.length ?? 0')).toBe(enforced ? 0 : 3);
    });

    it('a withdrawal while the server is away is in force on the next page', async () => {
      const server = `http://localhost:${shop.api.gpd.port}`;
      const url = await open({ own: true, snippet: { 'data-server': server } });
      await banner.press('accept');
      await banner.waitFor('reopen');
      const { principalId } = await banner.state();
      await shop.stop();
      await page.goto(url);
      expect(await banner.state()).toMatchObject({ phase: 'unavailable', granted: [] });
      expect(await page.evaluate('gpd.consent.withdraw()')).toEqual({
        outcome: 'kept',
        problem: 'unreachable',
      });
      await shop.restart();
      await page.goto(url);
      expect(await banner.state()).toMatchObject({ phase: 'decided', granted: [], principalId });
      await vi.waitFor(async () => {
        expect(await shop.api.check(principalId ?? '')).toMatchObject({ reason: 'withdrawn' });
      });
    });
  });
}
