import { expect, it, vi } from 'vitest';
import { DAY } from '../../src/lib/clock.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import { AGENT, ANALYTICS, bannerOf, GATED } from './support/shop.ts';

/** A choice that ended elsewhere, by a backend or an erasure: it ends here before a gated script runs. */

/** The ledger's answer never comes; everything else does. */
const NO_STATE = `{ const real = fetch; window.fetch = (url, init) => String(url).endsWith('/consent/state')
  ? new Promise((_, end) => init.signal.addEventListener('abort', () => end(init.signal.reason))) : real(url, init); }`;

const EVENTS = `addEventListener('DOMContentLoaded', () => { window.told = [];
  for (const name of ['change', 'recorded']) document.addEventListener('gpd-consent-' + name, ({ detail }) => told.push([name, detail])); });`;

type Told = readonly (readonly [string, Readonly<Record<string, unknown>>])[];

describeBanner('banner and a choice that ended elsewhere', [], (at) => {
  let url: string;

  async function accept(script = ''): Promise<string> {
    await at.enter(EVENTS + script);
    url = at.shop.page({ body: GATED });
    await at.page.goto(url);
    await at.banner.answer('accept');
    return (await at.banner.state()).principalId ?? '';
  }

  const gated = (): Promise<unknown> => at.page.evaluate('window.gated ?? null');
  const questions = (): Promise<unknown> =>
    at.page.evaluate(
      "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/v1/consent/state')).length",
    );

  it('nothing is asked of the ledger where nothing is granted', async () => {
    await at.enter();
    url = at.shop.page();
    await at.page.goto(url);
    await at.banner.answer('reject');
    await at.page.goto(url);
    await at.banner.waitFor('reopen');
    expect(await questions()).toBe(0);
  });

  it('still granted: one question, and what waits for it runs', async () => {
    await accept();
    await at.page.goto(url);
    await at.page.waitForFunction('window.gated?.length === 3');
    expect(await questions()).toBe(1);
    expect(await at.banner.receipt()).toMatchObject({ purposes: [ANALYTICS, AGENT] });
  });

  it('withdrawn by a backend: ends here before anything runs, and says when', async () => {
    const principalId = await accept();
    await at.shop.api.write('withdraw', { principalId, purposes: [ANALYTICS] });
    await at.page.goto(url);
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [AGENT], principalId });
    expect(await gated()).toBeNull();
    await at.banner.press('reopen');
    await at.banner.waitFor('save');
    expect(await at.banner.text('.purposes')).toContain('You withdrew your consent');
  });

  it('erased: asked as somebody new, whose choice is recorded', async () => {
    const principalId = await accept();
    const session = await at.shop.api.session(principalId);
    expect((await at.shop.api.post('/v1/principals/erase', {}, session)).status).toBe(200);
    await at.page.goto(url);
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [], principalId: null });
    expect(await gated()).toBeNull();
    await at.banner.answer('accept');
    const receipt = await at.banner.receipt();
    expect(receipt.principalId).not.toBe(principalId);
    expect(await at.shop.api.check(receipt.principalId ?? '')).toMatchObject({
      allowed: true,
      proof: receipt.proof,
    });
  });

  it('when the person comes back to the page, it ends, and the receipt is not of the dead proof', async () => {
    const principalId = await accept();
    await at.shop.api.write('withdraw', { principalId, purposes: [ANALYTICS, AGENT] });
    expect((await at.banner.state()).granted).toHaveLength(2);
    await at.page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");
    expect((await at.banner.receipt()).purposes).toEqual([]);
    expect((await at.banner.state()).granted).toEqual([]);
    expect(((await at.page.evaluate('told.at(-1)')) as Told[0])[1]).toMatchObject({
      granted: [],
      recorded: true,
    });
  });

  /** @param ms since the ledger last answered for it */
  async function reloadWithoutAnswer(ms: number): Promise<void> {
    await accept();
    await at.page.evaluate(`{ const name = Object.keys(localStorage)[0]; const record = JSON.parse(localStorage[name]);
      for (const choice of Object.values(record.choices)) choice.at = Date.now() - ${ms};
      localStorage[name] = JSON.stringify({ ...record, confirmedAt: Date.now() - ${ms} }); }`);
    at.page = await at.visitor.tab(NO_STATE);
    at.banner = bannerOf(at.page);
    await at.page.goto(url);
  }

  it('no answer: what was stored counts for a day, and what waits for it runs', async () => {
    await reloadWithoutAnswer(DAY - 3_600_000);
    expect((await at.banner.state()).granted).toHaveLength(2);
    await at.page.waitForFunction('window.gated?.length === 3');
  });

  it('no answer for more than a day: nothing runs, and the person is asked', async () => {
    await reloadWithoutAnswer(DAY + 1000);
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    expect(await gated()).toBeNull();
    await at.banner.answer('accept');
    await at.page.waitForFunction('window.gated?.length === 3');
  });

  it('tells the page of a grant once the ledger has it, of a withdrawal at once, and when that is recorded', async () => {
    await accept();
    expect(await at.page.evaluate('gpd.consent.ready.then(({ granted }) => granted.length)')).toBe(2);
    expect(await at.page.evaluate('gpd.consent.ready === gpd.consent.ready')).toBe(true);
    await at.page.evaluate('gpd.consent.withdraw()');
    await vi.waitFor(async () => expect(await at.page.evaluate('told.length')).toBe(4), SEEN_WITHIN);
    const [change, recorded, changeBack, recordedBack] = (await at.page.evaluate('told')) as Told;
    expect(change).toEqual([
      'change',
      expect.objectContaining({ granted: [ANALYTICS, AGENT], recorded: true }),
    ]);
    expect(recorded).toEqual([
      'recorded',
      { seq: expect.any(Number), choices: { [AGENT]: 'granted', [ANALYTICS]: 'granted' }, recorded: true },
    ]);
    expect(changeBack).toEqual(['change', expect.objectContaining({ granted: [], recorded: false })]);
    expect(recordedBack?.[1]).toMatchObject({ choices: { [AGENT]: 'withdrawn', [ANALYTICS]: 'withdrawn' } });
    expect(recordedBack?.[1]['seq']).toBeGreaterThan(Number(recorded?.[1]['seq']));
  });
});
