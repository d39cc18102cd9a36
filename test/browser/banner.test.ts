import type { KeyInput } from 'puppeteer-core';
import { expect, it, vi } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import { AGENT, ANALYTICS, bannerOf, GATED, LIBRARY, type ShopPage } from './support/shop.ts';

/** The journeys of a visitor, on a page of another origin under a strict policy, against the built server. */

describeBanner('banner', [], (at, name) => {
  async function open(options: ShopPage = {}, script?: string): Promise<string> {
    await at.enter(script);
    const url = at.shop.page(options);
    await at.page.goto(url);
    return url;
  }

  const gpdUrl = (): string => `http://localhost:${at.shop.api.gpd.port}`;
  const identify = (receipt?: object): Promise<{ sent: boolean; reason: string; status: number | null }> =>
    at.page.evaluate(`identify(${JSON.stringify(gpdUrl())}, ${JSON.stringify(receipt)})`) as never;
  const principal = async (): Promise<string> => (await at.banner.state()).principalId ?? '';
  const violations = (): Promise<unknown> => at.page.evaluate('window.violations');

  it('collects, keeps and says nothing before a choice', async () => {
    await open();
    await at.banner.waitFor('banner');
    expect(await at.banner.stored()).toBe(0);
    expect(await at.page.evaluate('document.cookie')).toBe('');
    expect(await at.visitor.context.cookies()).toEqual([]);
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [], principalId: null });
    // Not a trap, and not in the way: the keyboard stays where the page had it.
    expect(await at.page.evaluate('document.body.previousElementSibling.localName')).toBe('gpd-consent');
    expect(await at.banner.focused()).toBe('BODY');
    const requests = (await at.page.evaluate(
      "performance.getEntriesByType('resource').map((e) => new URL(e.name).pathname)",
    )) as string[];
    expect(requests.sort()).toEqual(['/page.css', '/page.js', '/v1/consent/banner', '/v1/embed.js']);
    expect(await violations()).toEqual([]);
  });

  it('asks with two answers of one size and one style, and none ticked', async () => {
    await open();
    await at.banner.waitFor('banner');
    const looks =
      (await at.banner.inside(`return [...root.querySelectorAll('[data-testid=consent-accept], [data-testid=consent-reject]')].map((b) => {
        const { width, height } = b.getBoundingClientRect(); const s = getComputedStyle(b);
        return [Math.round(width), Math.round(height), s.color, s.backgroundColor, s.borderColor, s.fontWeight, s.fontSize].join(' '); });`)) as string[];
    expect(looks).toHaveLength(2);
    expect(new Set(looks).size).toBe(1);
    await at.banner.press('settings');
    await at.banner.waitFor('save');
    expect(await at.banner.inside("return root.querySelectorAll('input').length")).toBe(2);
    expect(await at.banner.inside("return root.querySelectorAll('input:checked').length")).toBe(0);
  });

  it('a click that a script makes is nobody’s choice', async () => {
    await open();
    await at.banner.waitFor('banner');
    const clicked = await at.banner.inside(`
        const buttons = [...root.querySelectorAll('button')];
        for (const button of buttons) { button.click(); button.dispatchEvent(new MouseEvent('click', { bubbles: true, composed: true })); }
        return buttons.length`);
    expect(clicked).toBe(4);
    expect(await at.banner.inside("return root.querySelector('dialog').open")).toBe(false);
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [], principalId: null });
    expect(await at.banner.stored()).toBe(0);
    await at.banner.answer('accept');
    expect((await at.banner.state()).granted).toHaveLength(2);
  });

  it('what a machine granted is asked again when the agent says so', async () => {
    await open();
    const pending = identify();
    await at.banner.press('accept');
    await pending;
    const id = await principal();
    if (name === 'chromium') expect(await at.shop.api.check(id)).toMatchObject({ given: 'automation' });
    await at.page.evaluate("document.dispatchEvent(new Event('gpd-ask-again'))");
    await at.banner.waitFor('banner');
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [], principalId: id });
    expect(await at.shop.api.check(id)).toMatchObject({ allowed: true });
    await at.banner.answer('reject');
    const answered = () => at.shop.api.check(id);
    await expect.poll(answered, SEEN_WITHIN).toMatchObject({ reason: 'denied', given: 'unknown' });
  });

  it('grant: the ledger has it before the page, and the agent is answered 200', async () => {
    await open();
    const pending = identify();
    await at.banner.press('accept');
    expect(await pending).toEqual({ sent: true, reason: 'ok', status: 200 });
    const receipt = await at.banner.receipt();
    expect(receipt).toMatchObject({
      purposes: expect.arrayContaining([AGENT, ANALYTICS]),
      gpc: false,
      principalId: expect.stringMatching(/^b_[\w-]{43}$/),
    });
    expect(await at.shop.api.check(receipt.principalId ?? '')).toMatchObject({
      allowed: true,
      proof: receipt.proof,
    });
    expect(await at.shop.api.check(receipt.principalId ?? '', ANALYTICS)).toMatchObject({ allowed: true });
    const events = await at.shop.api.events(receipt.principalId ?? '');
    const granted = events.filter(({ type }) => type === 'consent.granted');
    expect(granted.map(({ source }) => source)).toEqual(['browser', 'browser']);
    // The region is gone, the button stays, and the keyboard is not lost.
    expect(await at.banner.shown('banner')).toBe(false);
    expect(await at.banner.shown('reopen')).toBe(true);
    await vi.waitFor(async () => expect(await at.banner.focused()).toBe('consent-reopen'));
    expect(await violations()).toEqual([]);
  });

  it('reject: the agent’s gate and the server both refuse, and it is remembered', async () => {
    const url = await open();
    await at.banner.press('reject');
    expect(await identify()).toMatchObject({ sent: false, reason: 'consent-missing' });
    const receipt = await at.banner.receipt();
    expect(receipt.purposes).toEqual([]);
    // Around the agent's gate: the server refuses by its own ledger.
    expect(await identify({ ...receipt, purposes: [AGENT] })).toEqual({
      sent: true,
      reason: 'consent-missing',
      status: 451,
    });
    const id = await principal();
    await vi.waitFor(async () => {
      expect(await at.shop.api.check(id)).toMatchObject({ allowed: false, reason: 'denied' });
    });
    await at.page.goto(url);
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    expect(await at.banner.shown('banner')).toBe(false);
    // The settings name the entry of the refusal, and the answer can be another one.
    await at.banner.press('reopen');
    await at.banner.waitFor('save');
    const { proof } = (await at.shop.api.check(id)) as { proof: { seq: number } };
    expect(await at.banner.text('.purposes')).toContain(`Entry no. ${proof.seq}.`);
    await at.banner.tick(AGENT);
    await at.banner.press('save');
    await at.banner.waitGone('save');
    expect((await at.banner.state()).granted).toEqual([AGENT]);
    expect(await identify()).toMatchObject({ status: 200 });
  });

  it('withdraw: 451 at once, for the receipt of a minute ago too', async () => {
    await open();
    await at.banner.answer('accept');
    const before = await at.banner.receipt();
    expect(await identify(before)).toMatchObject({ status: 200 });
    expect(await at.page.evaluate('gpd.consent.withdraw()')).toEqual({ outcome: 'recorded', problem: null });
    expect(await identify(before)).toEqual({ sent: true, reason: 'consent-missing', status: 451 });
    expect(await identify()).toMatchObject({ sent: false, reason: 'consent-missing' });
    expect(await at.shop.api.check(before.principalId ?? '')).toMatchObject({ reason: 'withdrawn' });
    expect(await at.banner.shown('reopen')).toBe(true);
  });

  it('withdraws purpose by purpose, as easily as it granted', async () => {
    await open();
    await at.banner.press('accept');
    await at.banner.press('reopen');
    await at.banner.waitFor('save');
    expect(
      await at.banner.inside("return [...root.querySelectorAll('input')].every((box) => box.checked)"),
    ).toBe(true);
    await at.banner.tick(ANALYTICS);
    await at.banner.press('save');
    await at.banner.waitGone('save');
    const { granted, principalId } = await at.banner.state();
    expect(granted).toEqual([AGENT]);
    expect(await at.shop.api.check(principalId ?? '', ANALYTICS)).toMatchObject({ reason: 'withdrawn' });
    expect(await at.shop.api.check(principalId ?? '')).toMatchObject({ allowed: true });
  });

  it('is one grant over all pages of the site, and another tab hears of the withdrawal', async () => {
    const url = await open();
    await at.banner.answer('accept');
    const second = await at.visitor.tab();
    await second.goto(url);
    const other = bannerOf(second);
    expect(await other.state()).toMatchObject({ phase: 'decided' });
    expect((await other.receipt()).proof).toEqual((await at.banner.receipt()).proof);
    await second.evaluate('gpd.consent.withdraw()');
    await vi.waitFor(async () => expect((await at.banner.state()).granted).toEqual([]));
    await vi.waitFor(async () => expect(await at.page.evaluate('heard.at(-1)')).toBe('change | decided | '));
  });

  it('keyboard alone: Tab to the answers, Escape grants nothing, the focus comes back', async () => {
    await open();
    await at.banner.waitFor('banner');
    const tab = async (): Promise<string> => {
      await at.page.keyboard.press('Tab');
      return at.banner.focused();
    };
    expect([await tab(), await tab(), await tab()]).toEqual([
      'consent-accept',
      'consent-reject',
      'consent-settings',
    ]);
    await at.page.keyboard.press('Enter');
    await at.banner.waitFor('close');
    expect(await at.banner.focused()).toBe('settings-title');
    expect(await tab()).toBe('consent-close');
    await tab();
    await at.page.keyboard.press(' ' as KeyInput);
    await at.page.keyboard.press('Escape');
    await vi.waitFor(async () => expect(await at.banner.settingsOpen()).toBe(false));
    await vi.waitFor(async () => expect(await at.banner.focused()).toBe('consent-settings'));
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    expect(await at.banner.stored()).toBe(0);
    // Out of the region: no trap.
    expect(await tab()).toBe('first');
    await at.page.keyboard.down('Shift');
    for (let i = 0; i < 3; i += 1) await at.page.keyboard.press('Tab');
    await at.page.keyboard.up('Shift');
    expect(await at.banner.focused()).toBe('consent-accept');
    await at.page.keyboard.press('Escape');
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    await at.page.keyboard.press('Enter');
    await at.banner.waitFor('reopen');
    expect((await at.banner.state()).granted).toHaveLength(2);
    await vi.waitFor(async () => expect(await at.banner.focused()).toBe('consent-reopen'));
  });

  it('the page’s own opener has the focus again', async () => {
    await open();
    await at.banner.press('reject');
    await at.page.focus('#opener');
    await at.page.keyboard.press('Enter');
    await at.banner.waitFor('close');
    await at.page.keyboard.press('Escape');
    await vi.waitFor(async () => expect(await at.banner.focused()).toBe('opener'));
    await vi.waitFor(async () => {
      expect(await at.page.evaluate('heard.slice(-2)')).toEqual(['open | decided | ', 'close | decided | ']);
    });
  });

  it('what is focused below the region is scrolled above it', async () => {
    await open();
    await at.banner.waitFor('banner');
    // The region is measured after it is drawn.
    await at.page.waitForFunction("document.documentElement.style.scrollPaddingBlockEnd.endsWith('px')");
    await at.page.focus('#end');
    const [link, region] = (await at.page.evaluate(`[document.getElementById('end'),
        document.querySelector('gpd-consent').shadowRoot.querySelector('.layer')].map((e) => e.getBoundingClientRect().toJSON())`)) as [
      { bottom: number },
      { top: number },
    ];
    expect(link.bottom).toBeLessThanOrEqual(region.top);
  });

  it('a gated inline script waits for the gated file before it, and not for one that fails', async () => {
    await open({ body: LIBRARY });
    await at.banner.answer('accept');
    await at.page.waitForFunction("window.ran?.includes('last')");
    expect(await at.page.evaluate('window.ran')).toEqual(['before', 'file', 'after file', 'last']);
  });

  it('a gated script that waits for a file does not run once its purpose is withdrawn', async () => {
    await open({ body: LIBRARY });
    await at.page.evaluate(
      `new MutationObserver(() => { if (document.querySelector('script[src="/slow.js"]')) gpd.consent.withdraw(); })
          .observe(document.body, { childList: true, subtree: true })`,
    );
    await at.banner.press('accept');
    await at.page.waitForFunction("window.ran?.includes('file')");
    expect((await at.banner.state()).granted).toEqual([]);
    expect(await at.page.evaluate('window.ran')).toEqual(['before', 'file']);
  });

  it('runs gated scripts once their purposes are granted, in their order and not before', async () => {
    await open({ body: GATED });
    await at.banner.press('settings');
    await at.banner.waitFor('save');
    expect(await at.page.evaluate('window.gated ?? null')).toBeNull();
    await at.banner.tick(ANALYTICS);
    await at.banner.press('save');
    await at.page.waitForFunction('window.gated?.length === 2');
    await at.banner.press('reopen');
    await at.banner.press('accept-all');
    await at.page.waitForFunction('window.gated?.length === 3');
    expect(await at.page.evaluate('window.gated.sort()')).toEqual(['both', 'file', 'inline']);
    expect(await violations()).toEqual([]);
  });

  it('hands the person a receipt of the choices, and says so when none came', async () => {
    await open();
    await at.banner.answer('accept');
    await at.page.evaluate("URL.createObjectURL = (page) => { window.receipt = page; return '#'; }");
    await at.banner.press('reopen');
    await at.banner.press('receipt');
    await at.page.waitForFunction('window.receipt');
    expect(await at.page.evaluate('receipt.text()')).toContain('You agreed on');
    const isErrorHidden = "return root.querySelector('.sheet .error').hidden";
    expect(await at.banner.inside(isErrorHidden)).toBe(true);
    await at.page.evaluate("fetch = () => Promise.reject(new Error('away'))");
    await at.banner.press('receipt');
    await vi.waitFor(async () =>
      expect(await at.banner.text('.sheet .error')).toBe('No receipt came. Please try again.'),
    );
    expect(await at.banner.inside(isErrorHidden)).toBe(false);
    expect(await violations()).toEqual([]);
  });

  it('a receipt that comes leaves the message that a choice was not saved', async () => {
    await open();
    await at.banner.answer('reject');
    await at.page.evaluate(`URL.createObjectURL = (page) => { window.receipt = page; return '#'; };
      window.reached = fetch; fetch = () => Promise.reject(new Error('away'));`);
    await at.banner.press('reopen');
    await at.banner.press('accept-all');
    const errorShown = () =>
      at.banner.inside(
        "const line = root.querySelector('.sheet .error'); return !line.hidden && line.textContent",
      );
    await vi.waitFor(async () => expect(await errorShown()).toContain('could not be saved'));
    const message = await errorShown();
    await at.page.evaluate('fetch = reached');
    await at.banner.press('receipt');
    await at.page.waitForFunction('window.receipt');
    expect(await errorShown()).toBe(message);
  });

  it('Google Consent Mode is told only where the page asks for it', async () => {
    await open();
    await at.banner.waitFor('banner');
    expect(await at.page.evaluate("'dataLayer' in window")).toBe(false);
    await at.visitor.leave();
    const attribute = `analytics_storage=${ANALYTICS} ad_storage=ads`;
    await open({ snippet: { 'data-google-consent': attribute } });
    await at.banner.answer('accept');
    const commands = (await at.page.evaluate('dataLayer.map((c) => [...c])')) as unknown[][];
    expect(commands[0]).toEqual([
      'consent',
      'default',
      { analytics_storage: 'denied', ad_storage: 'denied', wait_for_update: 500 },
    ]);
    expect(commands.at(-1)).toEqual([
      'consent',
      'update',
      { analytics_storage: 'granted', ad_storage: 'denied' },
    ]);
    expect(await at.page.evaluate('Object.prototype.toString.call(dataLayer[0])')).toBe('[object Arguments]');
  });

  it('speaks the page’s language, and the tenant’s texts go in as text', async () => {
    await open({ language: 'de-AT' });
    await at.banner.waitFor('banner');
    expect(await at.banner.text('[data-testid="consent-reject"]')).toBe('Ablehnen');
    expect(await at.page.evaluate("document.querySelector('gpd-consent').lang")).toBe('de-AT');
    const files =
      "performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/embed/')).length";
    expect(await at.page.evaluate(files)).toBe(0);
    await at.visitor.leave();
    await open({ language: 'ar' });
    await at.banner.waitFor('banner');
    expect(await at.banner.inside("return getComputedStyle(root.querySelector('.layer')).direction")).toBe(
      'rtl',
    );
    await at.visitor.leave();
    await open({ language: 'tlh', snippet: { 'data-lang': 'fi' } });
    await at.banner.waitFor('banner');
    expect(await at.banner.text('[data-testid="consent-accept"]')).toBe('Hyväksy');
  });

  it('stands wherever the snippet stands, and a second one changes nothing', async () => {
    const script = `<script src="${gpdUrl()}/v1/embed.js" data-key="${at.shop.api.keys.publishable}"></script>`;
    await open({ head: script });
    await at.banner.waitFor('banner');
    expect(await at.page.evaluate("document.querySelectorAll('gpd-consent').length")).toBe(1);
    await at.visitor.leave();
    await open({ snippet: { async: '' } });
    await at.banner.waitFor('banner');
  });

  it('follows the theme that the snippet names', async () => {
    await open({ snippet: { 'data-theme': 'dark' } });
    await at.banner.waitFor('banner');
    const ground = "return getComputedStyle(root.querySelector('.layer')).backgroundColor";
    expect(await at.banner.inside(ground)).toBe('rgb(26, 28, 32)');
  });

  it('moves nothing on the page', async () => {
    const watch = `window.places = []; addEventListener('DOMContentLoaded', () => {
        const link = document.getElementById('first');
        const look = () => { places.push(link.getBoundingClientRect().top); requestAnimationFrame(look); }; look(); });`;
    await open({}, watch);
    await at.banner.answer('accept');
    expect(new Set((await at.page.evaluate('places')) as number[]).size).toBe(1);
  });

  it('links the agent’s request to a principal by a session, and says when it cannot', async () => {
    await open();
    await at.banner.answer('accept');
    expect(await identify()).toMatchObject({ status: 200 });
    const session = await at.shop.api.session('u-1');
    const link = (token: string): Promise<unknown> =>
      at.page.evaluate(`gpd.consent.link(${JSON.stringify(session)}, ${token})`);
    expect(await link("'no token'")).toMatchObject({ linked: false, status: 401, error: 'unauthenticated' });
    expect(await link('token')).toEqual({
      linked: true,
      principalId: 'u-1',
      requestId: expect.stringMatching(/^req_/),
      linkedAt: expect.any(String),
    });
  });
});
