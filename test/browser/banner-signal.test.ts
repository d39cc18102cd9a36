import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { describeBanner } from './support/banner-suite.ts';
import { AGENT, ANALYTICS, type Shop, startShop } from './support/shop.ts';

/** Global Privacy Control: Firefox's own switch, and Chromium with the property that an extension gives it. */

const PROPERTY = "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true });";
const PREFERENCES = {
  'privacy.globalprivacycontrol.enabled': true,
  'privacy.globalprivacycontrol.functionality.enabled': true,
};

describeBanner('banner under Global Privacy Control', [PREFERENCES], (at, name) => {
  let plain: Shop;
  let asking: Shop;
  beforeAll(async () => {
    plain = await startShop({ analytics: false });
    asking = await startShop({ analytics: false, ask: true });
  });
  afterAll(() => Promise.all([plain?.close(), asking?.close()]));

  async function open(url: string): Promise<void> {
    await at.enter(name === 'chromium' ? PROPERTY : undefined);
    await at.page.goto(url);
  }
  const identify = (of: Shop, receipt?: object): Promise<object> =>
    at.page.evaluate(
      `identify('http://localhost:${of.api.gpd.port}', ${JSON.stringify(receipt)})`,
    ) as Promise<object>;

  it('is an answer already: nobody is asked, a chip says so, and nothing is kept', async () => {
    await open(plain.page());
    expect(await at.banner.state()).toMatchObject({
      phase: 'decided',
      gpc: true,
      granted: [],
      purposes: [{ id: AGENT, status: 'gpc-opt-out' }],
    });
    expect(await at.banner.shown('banner')).toBe(false);
    expect(await at.banner.text('.reopen .chip')).toBe('Global Privacy Control honoured');
    expect(await at.banner.stored()).toBe(0);
    expect(await at.banner.receipt()).toMatchObject({ purposes: [], gpc: true });
    expect(await identify(plain)).toMatchObject({ sent: false, reason: 'gpc' });
  });

  it('what it opts out of cannot be ticked, and the settings say why', async () => {
    await open(plain.page());
    await at.banner.press('reopen');
    await at.banner.waitFor('save');
    expect(
      await at.banner.inside("return root.querySelector('input').matches(':disabled:not(:checked)')"),
    ).toBe(true);
    expect(await at.banner.text('.purposes')).toContain('Your browser asks sites not to do this');
    await at.banner.press('accept-all');
    await at.banner.waitGone('save');
    expect((await at.banner.state()).granted).toEqual([]);
    expect(await at.banner.stored()).toBe(0);
  });

  it('other purposes are asked, and a choice there makes none of the signal', async () => {
    await open(at.shop.page());
    await at.banner.waitFor('banner');
    expect(await at.banner.text('.layer')).toContain('Audience measurement');
    expect(await at.banner.text('.layer')).not.toContain('Device identification');
    expect(await at.banner.text('.layer .chip')).toBe('Global Privacy Control honoured');
    await at.banner.answer('accept');
    const { granted, principalId } = await at.banner.state();
    expect(granted).toEqual([ANALYTICS]);
    const storedChoices = (await at.page.evaluate(
      'JSON.parse(Object.values(localStorage)[0]).choices',
    )) as object;
    expect(Object.keys(storedChoices)).toEqual([ANALYTICS]);
    expect(await at.shop.api.check(principalId ?? '', ANALYTICS)).toMatchObject({ allowed: true });
    expect(await at.shop.api.events(principalId)).toMatchObject([{ purpose: ANALYTICS, gpc: true }]);
  });

  it('under the policy ask: a yes to that purpose alone counts, and is taken back at once', async () => {
    const url = asking.page();
    await open(url);
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [], gpc: true });
    expect(await at.banner.shown('banner')).toBe(false);
    expect(await identify(asking)).toMatchObject({ sent: false, reason: 'gpc' });
    await at.banner.press('reopen');
    // A press on all is no specific yes.
    await at.banner.press('accept-all');
    await at.banner.waitGone('save');
    expect((await at.banner.state()).granted).toEqual([]);
    // Asked: not again, neither here nor on the next page.
    for (const again of [true, false]) {
      await at.banner.press('reopen');
      await at.banner.waitFor('save');
      expect(await at.banner.shown('over-gpc')).toBe(false);
      if (again) await at.page.goto(url);
    }

    await at.page.evaluate("localStorage.removeItem('gpd-gpc-asked:shop')");
    await at.page.goto(url);
    await at.banner.press('reopen');
    await at.banner.waitFor('save');
    const named =
      "return root.querySelector('[data-testid=consent-over-gpc]').getAttribute('aria-labelledby')";
    const ids = (await at.banner.inside<string>(named)).split(' ');
    expect(await Promise.all(ids.map((id) => at.banner.text(`#${id}`)))).toEqual([
      'Allow this one',
      'Device identification',
    ]);
    await at.banner.press('over-gpc');
    await at.banner.waitGone('save');
    const { granted, principalId } = await at.banner.state();
    expect(granted).toEqual([AGENT]);
    const yes = { type: 'consent.granted', gpc: true, overGpc: true };
    expect(await asking.api.events(principalId)).toMatchObject([yes]);
    await at.page.goto(url);
    expect(await identify(asking)).toMatchObject({ status: 200 });
    const receipt = await at.banner.receipt();
    await at.page.evaluate('window.gpd.consent.withdraw()');
    expect(await asking.api.check(principalId ?? '')).toMatchObject({ allowed: false });
    expect(await identify(asking)).toMatchObject({ sent: false, reason: 'gpc' });
    expect(await identify(asking, receipt)).toMatchObject({ status: 451 });
  });

  if (name === 'chromium') {
    it('switched on after a grant: the ledger is told of the signal; switched off again: asked again', async () => {
      await at.enter();
      const url = plain.page();
      await at.page.goto(url);
      await at.banner.answer('accept');
      const before = await at.banner.receipt();
      const id = before.principalId ?? '';

      const script = await at.page.evaluateOnNewDocument(PROPERTY);
      await at.page.goto(url);
      expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [], gpc: true });
      await vi.waitFor(async () =>
        expect(await plain.api.check(id)).toMatchObject({ reason: 'gpc-opt-out' }),
      );
      expect(await identify(plain, { ...before, gpc: false })).toMatchObject({ sent: false, reason: 'gpc' });
      const types = (await plain.api.events(id)).map(({ type }) => type);
      expect(types).toEqual(['consent.gpc-opt-out', 'consent.granted']);

      await at.page.removeScriptToEvaluateOnNewDocument(script.identifier);
      await at.page.goto(url);
      expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [], gpc: false });
      await at.banner.answer('accept');
      expect(await plain.api.check(id)).toMatchObject({ allowed: true });
      expect(await identify(plain)).toMatchObject({ status: 200 });
    });

    it('that only a header carries is heeded too', async () => {
      await at.enter();
      await at.page.setExtraHTTPHeaders({ 'sec-gpc': '1' });
      await at.page.goto(plain.page());
      expect(await at.banner.state()).toMatchObject({ phase: 'decided', gpc: true, granted: [] });
    });
  }
});
