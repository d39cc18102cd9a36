import { expect, it, vi } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import { GATED, NONCE } from './support/shop.ts';

/** A page that nobody has seen: not judged, not recorded, not asked, and no gated script runs, until somebody is there. */

/** A tab in the background, until `show()`. */
const HIDDEN = `{ let state = 'hidden'; Object.defineProperty(Document.prototype, 'visibilityState', { get: () => state });
  const entries = Performance.prototype.getEntriesByType;
  Performance.prototype.getEntriesByType = function (type) { return type === 'visibility-state' ? [] : entries.call(this, type); };
  window.show = () => { state = 'visible'; document.dispatchEvent(new Event('visibilitychange', { bubbles: true })); }; }`;

/** The page counts what ran, and what it has asked gpd for. */
const DONE = `[window.gated?.length ?? 0, !!document.querySelector('gpd-consent'), !!window.result,
  performance.getEntriesByType('resource').filter(({ name }) => /consent.(?:banner|state)|pubkey|_fp/.test(name)).length].join()`;
const NOTHING = '0,false,false,0';

const identifyBy = (gpd: string): string =>
  `addEventListener('load', () => void identify('${gpd}').then((result) => { window.result = result; }));`;

describeBanner('page that nobody has seen', [], (at, name) => {
  const gpd = (): string => `http://localhost:${at.shop.api.gpd.port}`;
  const decisions = (): Promise<number> => at.shop.decisions();
  /** Scripts and timers of the page go on meanwhile. */
  const wait = () => new Promise((resolve) => setTimeout(resolve, 1500));

  async function accept(): Promise<void> {
    await at.enter();
    await at.page.goto(at.shop.page());
    await at.banner.answer('accept');
  }

  async function expectVisit(read: () => Promise<unknown>, before: number): Promise<void> {
    await vi.waitFor(async () => expect(await read()).toMatch(/^3,true,true,[1-9]/), SEEN_WITHIN);
    expect(await decisions()).toBe(before + 1);
  }

  it('a tab in the background', async () => {
    await accept();
    const before = await decisions();
    const tab = await at.visitor.tab(HIDDEN + identifyBy(gpd()));
    await tab.goto(at.shop.page({ body: GATED }));
    await wait();
    expect(await tab.evaluate(DONE)).toBe(NOTHING);
    expect(await decisions()).toBe(before);
    await tab.evaluate('show()');
    await expectVisit(() => tab.evaluate(DONE), before);
  });

  it.each(['hidden', 'width="0" height="0"'])('a frame that is loaded ahead: %s', async (attributes) => {
    await accept();
    const before = await decisions();
    const script = `<script nonce="${NONCE}">${identifyBy(gpd())}</script>`;
    const src = at.shop.page({ body: GATED + script });
    const tab = await at.visitor.tab();
    await tab.goto(at.shop.page({ body: `<iframe ${attributes} src="${src}"></iframe>` }));
    await wait();
    const inFrame = (): Promise<unknown> =>
      tab.evaluate(`(() => { const w = document.querySelector('iframe').contentWindow;
        return [w.gated?.length ?? 0, !!w.document.querySelector('gpd-consent'), !!w.result, w.performance.getEntriesByType('resource')
          .filter(({ name }) => /consent.(?:banner|state)|pubkey|_fp/.test(name)).length].join(); })()`);
    expect(await inFrame()).toBe(NOTHING);
    expect(await decisions()).toBe(before);
    await tab.evaluate(
      `{ const frame = document.querySelector('iframe'); frame.hidden = false; frame.width = frame.height = 400; }`,
    );
    await expectVisit(inFrame, before);
  });

  // Firefox does not prerender.
  if (name === 'chromium')
    it('a page that is prerendered', async () => {
      await accept();
      const before = await decisions();
      const report = `setInterval(() => fetch('/report/' + document.prerendering + '/' + ${DONE}), 1500);`;
      const next = at.shop.page({
        body: `${GATED}<script nonce="${NONCE}">${identifyBy(gpd())}${report}</script>`,
        connect: at.shop.origin,
      });
      const rules = {
        prerender: [{ source: 'list', urls: [new URL(next).pathname], eagerness: 'immediate' }],
      };
      await at.page.goto(
        at.shop.page({
          head: `<script type="speculationrules" nonce="${NONCE}">${JSON.stringify(rules)}</script>`,
        }),
      );
      await vi.waitFor(() => expect(at.shop.asked).toContain(`/report/true/${NOTHING}`), SEEN_WITHIN);
      expect(await decisions()).toBe(before);
      await at.page.evaluate(`location.href = '${next}'`);
      // The driver loses sight of a page that takes the place of another.
      const seen = async () => at.shop.asked.find((path) => path.startsWith('/report/false/3'))?.slice(14);
      await expectVisit(seen, before);
    });
});
