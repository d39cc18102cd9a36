import { expect, it } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import { AGENT, ANALYTICS, GATED, NONCE, type ShopPage } from './support/shop.ts';

/**
 * The page's server takes the banner from gpd and writes it into the page: people see it before any script
 * has run, and the script takes the same elements over.
 */

const MARKUP = `?nonce=${NONCE}`;
/** A script that the page waits for would end the wait for the page. */
const HELD: ShopPage = { markup: MARKUP, held: true, snippet: { async: '' } };

describeBanner('banner before its script', [], (at, name) => {
  async function open(options: ShopPage = HELD, script = ''): Promise<string> {
    await at.enter(`${script} window.shift = 0;
      if (PerformanceObserver.supportedEntryTypes.includes('layout-shift'))
        new PerformanceObserver((list) => { for (const { value } of list.getEntries()) shift += value; })
          .observe({ type: 'layout-shift', buffered: true });`);
    const url = at.shop.page(options);
    await at.page.goto(url, { waitUntil: 'domcontentloaded' });
    return url;
  }
  async function release(): Promise<void> {
    at.shop.release();
    await at.page.waitForFunction('window.gpd?.consent');
    await at.banner.state();
  }
  const requests = (): Promise<string[]> =>
    at.page.evaluate(
      "performance.getEntriesByType('resource').map((e) => new URL(e.name).pathname).sort()",
    ) as Promise<string[]>;
  const violations = (): Promise<unknown> => at.page.evaluate('window.violations');
  const places = (): Promise<unknown> =>
    at.page.evaluate(`(() => { const box = (e) => { const { x, y, width, height } = e.getBoundingClientRect(); return [x, y, width, height]; };
      const root = document.querySelector('gpd-consent').shadowRoot;
      return [...root.querySelectorAll('.layer, .layer > :not(.error), .layer button'), ...document.querySelectorAll('body, h1, #end')].map(box); })()`);
  const principal = async (): Promise<string> => (await at.banner.state()).principalId ?? '';
  const check = async (purpose?: string) => at.shop.api.check(await principal(), purpose);

  it('is there without a script, and the script takes it over as it is', async () => {
    await open();
    await at.banner.waitFor('banner');
    expect(await requests()).not.toContain('/v1/consent/banner');
    await at.page.keyboard.press('Tab');
    expect(await at.banner.focused()).toBe('consent-accept');
    const before = await places();
    await at.page.evaluate(`(() => { const layer = document.querySelector('gpd-consent').shadowRoot.querySelector('.layer');
      window.changes = 0; window.layer = layer;
      new MutationObserver((records) => { changes += records.filter(({ type, removedNodes }) => type === 'childList' && removedNodes.length > 0).length; })
        .observe(layer, { childList: true, subtree: true, characterData: true }); })()`);
    await release();
    expect(await places()).toEqual(before);
    expect(await at.banner.focused()).toBe('consent-accept');
    expect(await at.page.evaluate('shift')).toBe(0);
    expect(
      await at.page.evaluate(
        "[changes, document.querySelector('gpd-consent').shadowRoot.querySelector('.layer') === layer, document.querySelectorAll('gpd-consent').length]",
      ),
    ).toEqual([0, true, 1]);
    expect(await at.page.evaluate("document.querySelector('gpd-consent').matches(':popover-open')")).toBe(
      true,
    );
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [], principalId: null });
    expect(await at.banner.stored()).toBe(0);
    await at.page.keyboard.press('Enter');
    await at.banner.waitFor('reopen');
    expect((await at.banner.state()).granted).toHaveLength(2);
    expect(await check()).toMatchObject({ allowed: true });
    expect(await violations()).toEqual([]);
  });

  it('draws what the script alone draws', async () => {
    const drawn = (): Promise<string> =>
      at.banner.inside(`const layer = root.querySelector('.layer').cloneNode(true); layer.querySelector('.error')?.remove();
        return layer.outerHTML;`);
    for (const language of ['en', 'de', 'ar']) {
      await open({ markup: `${MARKUP}&lang=${language}`, language });
      await at.banner.state();
      const takenOver = await drawn();
      await at.page.goto(at.shop.page({ language }));
      await at.banner.waitFor('banner');
      expect(await drawn()).toBe(takenOver);
      if (language !== 'ar') await at.visitor.leave();
    }
  });

  it('a press on Reject before the script is a refusal: seen at once, recorded once it can be', async () => {
    const url = await open();
    await at.banner.waitFor('banner');
    // A call of the test would end the activation that the press gives (Firefox), so the page tells the shop.
    await at.page.evaluate(`(() => { const layer = document.querySelector('gpd-consent').shadowRoot.querySelector('.layer');
      window.flashes = 0; const told = new Set();
      const tell = (src) => { if (!told.has(src)) document.body.append(Object.assign(document.createElement('iframe'), { src })); told.add(src); };
      const look = () => {
        const isSeen = layer.getClientRects().length > 0;
        if (isSeen && told.has('/gone')) flashes += 1;
        if (!isSeen) tell('/gone');
        if (layer.hidden) tell('/answered');
        requestAnimationFrame(look);
      };
      look(); })()`);
    await at.banner.press('reject');
    await expect.poll(() => at.shop.asked, SEEN_WITHIN).toContain('/gone');
    at.shop.release();
    await expect.poll(() => at.shop.asked, SEEN_WITHIN).toContain('/answered');
    await at.banner.waitFor('reopen');
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    for (const purpose of [AGENT, ANALYTICS])
      await expect
        .poll(() => check(purpose), SEEN_WITHIN)
        .toMatchObject({ allowed: false, reason: 'denied' });
    expect(await at.page.evaluate('flashes')).toBe(0);
    await at.page.goto(url, { waitUntil: 'domcontentloaded' });
    await release();
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
  });

  it('a press on Reject before the script ends an older yes before anything that waits has run', async () => {
    await open({});
    await at.banner.answer('accept');
    const { principalId } = await at.banner.state();
    await at.page.goto(at.shop.page({ ...HELD, body: GATED }), { waitUntil: 'domcontentloaded' });
    await at.page.evaluate(`(() => { const layer = document.querySelector('gpd-consent').shadowRoot.querySelector('.layer');
      const look = () => layer.getClientRects().length > 0 ? requestAnimationFrame(look)
        : document.body.append(Object.assign(document.createElement('iframe'), { src: '/refused' }));
      look(); })()`);
    await at.banner.press('reject');
    await expect.poll(() => at.shop.asked, SEEN_WITHIN).toContain('/refused');
    at.shop.release();
    await expect
      .poll(() => at.shop.api.check(principalId ?? '', ANALYTICS), SEEN_WITHIN)
      .toMatchObject({ allowed: false, reason: 'withdrawn' });
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    expect(await at.page.evaluate('window.gated')).toBeUndefined();
  });

  it('a press on Accept or Settings before the script is nothing, and the banner stays', async () => {
    await open();
    await at.banner.press('accept');
    await at.banner.press('settings');
    expect(await at.banner.shown('banner')).toBe(true);
    await release();
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [], principalId: null });
    expect(await at.banner.stored()).toBe(0);
    expect(await at.banner.settingsOpen()).toBe(false);
    await at.banner.press('settings');
    await at.banner.waitFor('save');
    expect(await at.banner.settingsOpen()).toBe(true);
  });

  it('a click that a script makes before the banner’s is nobody’s choice', async () => {
    // A call from the test would count as a press of the person.
    const clicks = `document.addEventListener('readystatechange', () => {
      for (const button of document.querySelector('gpd-consent')?.shadowRoot.querySelectorAll('.layer button') ?? []) button.click();
    }, { once: true });`;
    await open({ markup: MARKUP }, clicks);
    await at.banner.waitFor('banner');
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [], principalId: null });
    expect(await at.banner.stored()).toBe(0);
  });

  it('gpd is away: it asks, a refusal holds and is sent later, a grant says that it was not recorded', async () => {
    const shown = {
      own: true,
      markup: MARKUP,
      snippet: { 'data-server': `http://localhost:${at.shop.api.gpd.port}` },
    };
    const url = await open(shown);
    await at.shop.stop();
    await at.page.goto(url);
    await at.banner.press('accept');
    await at.page.waitForSelector('gpd-consent >>> .layer .error', { visible: true });
    expect(await at.banner.text('.layer .error')).toContain('could not be saved');
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    await at.banner.answer('reject');
    await expect.poll(() => at.banner.text('.heard'), SEEN_WITHIN).toContain('Your choice applies here.');
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    await at.shop.restart();
    await at.page.goto(url);
    await expect.poll(() => check(), SEEN_WITHIN).toMatchObject({ allowed: false, reason: 'denied' });
  });

  it('a browser without declarative shadow roots shows nothing of it, and then the banner', async () => {
    await open({ ...HELD, altered: (text) => text.replace('shadowrootmode', 'data-unknown') });
    expect(await at.page.evaluate("document.querySelector('gpd-consent').getClientRects().length")).toBe(0);
    await release();
    await at.banner.answer('reject');
    expect(await violations()).toEqual([]);
  });

  it('a policy that refuses its style shows nothing of it, and then the banner', async () => {
    await open({ ...HELD, markup: '' });
    expect(await at.page.evaluate("document.querySelector('gpd-consent').getClientRects().length")).toBe(0);
    expect(await at.banner.shown('banner')).toBe(false);
    await release();
    await at.banner.answer('reject');
  });

  it('somebody who has answered is not asked again by a page that asks everybody', async () => {
    await open({});
    await at.banner.answer('accept');
    await at.page.goto(at.shop.page({ markup: MARKUP }));
    const { phase, granted } = await at.banner.state();
    expect([phase, granted.length]).toEqual(['decided', 2]);
    expect(await at.banner.shown('banner')).toBe(false);
    expect(await at.banner.shown('reopen')).toBe(true);
  });

  it('the page’s language counts, and words that the page’s server kept for too long are replaced', async () => {
    await open({ markup: `${MARKUP}&lang=de`, language: 'en' });
    await at.banner.state();
    expect(await at.banner.text('[data-testid="consent-reject"]')).toBe('Reject');
    const older = (text: string): string => text.replaceAll('Audience measurement', 'Old words');
    await at.page.goto(at.shop.page({ markup: MARKUP, altered: older }));
    await expect.poll(() => at.banner.text('.layer'), SEEN_WITHIN).toContain('Audience measurement');
    expect(await at.banner.text('.layer')).not.toContain('Old words');
    await at.banner.answer('accept');
    expect(await check(ANALYTICS)).toMatchObject({ allowed: true });
  });

  it('what nobody would hear is removed', async () => {
    await open({ markup: MARKUP, snippet: { 'data-key': '' } });
    expect(await at.banner.state()).toMatchObject({ phase: 'unavailable', problem: 'no-key' });
    expect(await at.page.evaluate("document.querySelector('gpd-consent')")).toBeNull();
  });

  it('comes back when the page replaces its body', async () => {
    await open({ markup: MARKUP });
    await at.banner.state();
    await at.page.evaluate("document.body.replaceWith(document.createElement('body'))");
    await at.banner.answer('reject');
    if (name === 'chromium') expect(await at.page.evaluate('shift')).toBe(0);
  });
});
