import { afterAll, beforeAll, expect, it } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { AGENT, ANALYTICS, type Shop, startShop } from './support/shop.ts';
import { clockAhead, FILL } from './support/trouble.ts';
import { describeInWebkit, startWebkit, type Webkit } from './support/webkit.ts';

/** Banner and agent in WebKit: what Safari has in common with it. */

const BUTTON = (name: string): string =>
  `document.querySelector('gpd-consent').shadowRoot.querySelector('[data-testid="consent-${name}"]')`;

describeInWebkit('browser/webkit', () => {
  let shop: Shop;
  let webkit: Webkit;

  beforeAll(async () => {
    [shop, webkit] = await Promise.all([startShop(), startWebkit()]);
  });
  afterAll(async () => {
    await webkit?.quit();
    await shop?.close();
  });

  const gpd = (): string => `http://localhost:${shop.api.gpd.port}`;
  const state = (): Promise<{ phase: string; granted: string[]; principalId: string }> =>
    webkit.run('return gpd.consent.ready.then(() => gpd.consent.state())');
  /** A page of somebody who was never here, and who accepts. */
  async function accept(before = ''): Promise<string> {
    const url = shop.page({ cached: true });
    await webkit.goto(url);
    await webkit.run('localStorage.clear()');
    await webkit.goto(url);
    expect(await state()).toMatchObject({ phase: 'asking', granted: [] });
    await webkit.run(before);
    await webkit.click(BUTTON('accept'));
    await expect.poll(async () => (await state()).granted.length, SEEN_WITHIN).toBe(2);
    return url;
  }

  it.each([0, 600_000, -600_000])('grant and identify, by a clock %d ms ahead', async (ms) => {
    await accept(clockAhead(ms));
    expect(await webkit.run(`return identify('${gpd()}')`)).toEqual({
      sent: true,
      reason: 'ok',
      status: 200,
    });
    expect(await webkit.run('return window.violations')).toEqual([]);
  });

  it('collects every group, and finds nothing patched', async () => {
    await accept();
    expect(
      await webkit.run(
        `const { collect } = await import('${gpd()}/v1/agent.js'); return collect(await gpd.consent.receipt())`,
      ),
    ).toMatchObject({
      frame: { srcdocPreattached: false },
      graphics: { canvasStable: true, audioStable: true, canvasFlatBadPixels: 0 },
      engine: { evalLength: 37, math: expect.any(String) },
      fonts: expect.any(String),
      tells: { patched: [], globals: [], notificationMismatch: false, processType: null },
    });
  });

  it('full storage: a withdrawal holds, and the next page asks', async () => {
    const url = await accept();
    const { principalId } = await state();
    await webkit.run(FILL);
    expect(await webkit.run(`return gpd.consent.withdraw('${ANALYTICS}')`)).toMatchObject({
      outcome: 'recorded',
    });
    expect((await state()).granted).toEqual([AGENT]);
    expect(await shop.api.check(principalId, ANALYTICS)).toMatchObject({ reason: 'withdrawn' });
    await webkit.goto(url);
    expect(await state()).toMatchObject({ phase: 'asking', granted: [] });
  });

  it('a page from the back/forward cache grants nothing that a later page refused', async () => {
    await accept(`addEventListener('pageshow', (event) => { window.restored = event.persisted; }); ${FILL}`);
    await webkit.goto(shop.page());
    await webkit.click(BUTTON('reject'));
    await expect.poll(async () => (await state()).phase, SEEN_WITHIN).toBe('decided');
    await webkit.run('setTimeout(() => history.back())');
    await expect.poll(() => webkit.run('return window.restored').catch(() => null), SEEN_WITHIN).toBe(true);
    expect(await state()).toMatchObject({ phase: 'asking', granted: [] });
  });
});
