import { expect, it, vi } from 'vitest';
import { describeBanner } from './support/banner-suite.ts';
import { AGENT, GATED, type ShopPage } from './support/shop.ts';

/** The banner and the page that it stands on: neither gets in the way of the other. */

const NEW_ROOT = `const html = document.createElement('html'); html.append(document.createElement('head'), document.createElement('body'));
  html.lastChild.append(document.createElement('main'));`;
/** Frameworks replace a page in these ways: Turbo, a failed hydration, a transition. */
const RENEWALS = {
  'a new body': "document.body.replaceWith(document.createElement('body'))",
  'another text in the root':
    "document.documentElement.replaceChildren(document.createElement('head'), document.createElement('body'))",
  'a new root': `{ ${NEW_ROOT} document.documentElement.replaceWith(html); }`,
  'a root that is taken away, and a new one': `{ ${NEW_ROOT} document.removeChild(document.documentElement); document.appendChild(html); }`,
} as const;

describeBanner('banner on its page', [], (at) => {
  async function open(options: ShopPage = {}): Promise<string> {
    await at.enter(
      "window.faults = []; for (const name of ['error', 'unhandledrejection']) addEventListener(name, (e) => faults.push(String(e.reason ?? e.message)));",
    );
    const url = at.shop.page(options);
    await at.page.goto(url);
    return url;
  }

  it('the last link of a page does not stay under the button', async () => {
    const away = '<p id="corner"><a id="imprint" href="#first">Imprint</a></p>';
    await open({ after: away });
    await at.banner.answer('reject');
    await at.page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    const reaches = `(() => { const box = document.getElementById('imprint').getBoundingClientRect();
        return document.elementFromPoint(box.left + 4, box.top + box.height / 2)?.id; })()`;
    await vi.waitFor(async () => expect(await at.page.evaluate(reaches)).toBe('imprint'));
    await at.page.evaluate('scrollTo(0, 0)');
    await at.page.focus('#imprint');
    const [link, button] = (await at.page.evaluate(`[document.getElementById('imprint'),
        document.querySelector('gpd-consent').shadowRoot.querySelector('.reopen')].map((e) => e.getBoundingClientRect().toJSON())`)) as [
      { bottom: number },
      { top: number },
    ];
    expect(link.bottom).toBeLessThanOrEqual(button.top);
  });

  it('a page that renews its body has the button again, and the settings open', async () => {
    await open();
    await at.banner.answer('reject');
    await at.page.evaluate("document.body.textContent = ''");
    await at.banner.waitFor('reopen');
    await at.banner.press('reopen');
    await at.banner.waitFor('close');
    await at.page.evaluate("document.body.replaceWith(document.createElement('body'))");
    await at.banner.waitFor('reopen');
    await at.banner.press('reopen');
    await at.banner.waitFor('close');
    expect(await at.banner.inside("return root.querySelector('dialog').matches(':modal')")).toBe(true);
    await at.page.evaluate("document.body.textContent = ''; gpd.consent.open()");
    await at.banner.waitFor('close');
    expect(await at.page.evaluate('faults')).toEqual([]);
  });

  it.each(Object.entries(RENEWALS))('%s: it comes back, asking and answered', async (_how, renew) => {
    await open();
    await at.banner.waitFor('banner');
    await at.page.evaluate(renew);
    await at.banner.answer('reject');
    await at.page.evaluate(renew);
    await at.banner.press('reopen');
    await at.banner.waitFor('close');
    await at.page.evaluate(renew);
    await at.banner.press('reopen');
    await at.banner.waitFor('close');
    expect(await at.banner.inside("return root.querySelector('dialog').matches(':modal')")).toBe(true);
    expect(await at.page.evaluate('document.querySelectorAll("gpd-consent").length')).toBe(1);
    expect(await at.page.evaluate('faults')).toEqual([]);
  });

  it('a new root has room at its end as the old one had', async () => {
    await open();
    await at.banner.waitFor('banner');
    await at.page.evaluate(
      `${RENEWALS['a new root']} document.querySelector('main').style.height = '3000px'`,
    );
    await at.banner.waitFor('banner');
    await vi.waitFor(async () =>
      expect(await at.page.evaluate("document.querySelectorAll('html > gpd-consent-room').length")).toBe(1),
    );
    expect(await at.page.evaluate('document.documentElement.style.scrollPaddingBlockEnd')).toMatch(/^\d+px$/);
  });

  it('a body with a transform does not take it off the screen', async () => {
    await open({ head: '<link rel="stylesheet" href="/transform.css">' });
    await at.banner.waitFor('banner');
    const isInSight = (part: string): Promise<boolean> =>
      at.banner.inside(`const { top, bottom } = root.querySelector('${part}').getBoundingClientRect();
          return top >= 0 && bottom <= innerHeight;`);
    expect(await isInSight('.layer')).toBe(true);
    await at.banner.answer('reject');
    expect(await isInSight('.reopen')).toBe(true);
  });

  it('a page whose style sheet counts what is in its body stays where it was', async () => {
    const places = (): Promise<unknown> =>
      at.page.evaluate(`[...document.querySelectorAll('header, main, footer')].map((e) => {
          const { x, y, width, height } = e.getBoundingClientRect(); return [e.localName, x, y, width, height].join(' '); })`);
    const page = { head: '<link rel="stylesheet" href="/counting.css">', after: '<footer>Imprint</footer>' };
    await open({ ...page, own: true, snippet: { src: '/gated.js' } });
    const without = await places();
    await at.visitor.leave();
    await open(page);
    await at.banner.waitFor('banner');
    await at.page.waitForSelector('gpd-consent-room');
    expect(await places()).toEqual(without);
    await at.banner.answer('reject');
    expect(await places()).toEqual(without);
  });

  it('search engines are told to leave its text out of what they quote', async () => {
    await open();
    await at.banner.waitFor('banner');
    expect(
      await at.page.evaluate("document.querySelector('gpd-consent').hasAttribute('data-nosnippet')"),
    ).toBe(true);
    expect(await at.banner.inside("return root.querySelectorAll('[data-nosnippet]').length")).toBe(2);
  });

  it('text that a page sets small is not small here, and very large text has the answers each in a row', async () => {
    await open({ head: '<link rel="stylesheet" href="/small.css">' });
    await at.banner.waitFor('banner');
    const size = "return getComputedStyle(root.querySelector('.layer p')).fontSize";
    expect(await at.banner.inside(size)).toBe('15px');
    await at.visitor.leave();
    const tops = `const tops = [...root.querySelectorAll('.layer .buttons button:not(:nth-child(3))')].map((b) => Math.round(b.getBoundingClientRect().top));
        return new Set(tops).size`;
    const widths = `const widths = [...root.querySelectorAll('.layer .buttons button:not(:nth-child(3))')].map((b) => Math.round(b.getBoundingClientRect().width));
        return new Set(widths).size`;
    const inSight = `const layer = root.querySelector('.layer').getBoundingClientRect();
        return [...root.querySelectorAll('.layer .buttons button')].every((b) => b.getBoundingClientRect().bottom < layer.bottom)`;
    for (const [width, rows] of [
      [1024, 1],
      [420, 2],
    ] as const) {
      await open({ language: 'de', head: '<link rel="stylesheet" href="/large.css">' });
      await at.page.setViewport({ width, height: 500 });
      await at.banner.waitFor('banner');
      expect([width, await at.banner.inside(tops), await at.banner.inside(widths)]).toEqual([width, rows, 1]);
      expect(await at.banner.inside(inSight)).toBe(true);
      if (width !== 420) await at.visitor.leave();
    }
  });

  it('a gated script that the page’s policy forbids stops nothing', async () => {
    const types = `<meta http-equiv="Content-Security-Policy" content="require-trusted-types-for 'script'">`;
    await open({ head: types, body: GATED });
    await at.banner.answer('accept');
    expect((await at.banner.receipt()).purposes).toContain(AGENT);
    const enforced = await at.page.evaluate("'trustedTypes' in window");
    expect(await at.page.evaluate('window.gated?.length ?? 0')).toBe(enforced ? 0 : 3);
  });
});
