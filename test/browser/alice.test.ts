import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ConsentClient, verifyProof } from '../../sdk/node/src/index.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { ask } from '../support/http.ts';
import { describeWithTool } from '../support/tools.ts';
import { launch, missingBrowser } from './support/drivers.ts';
import { blocksOf, filesOf, type PastedShop, pasteShop, readDocs } from './support/pasted.ts';
import { bannerOf } from './support/shop.ts';

/**
 * The shop of docs/after-login.md with the server of docs/server-rendering.md, as they are pasted. Alice grants on her laptop (Chromium)
 * and logs in; her phone (Firefox) sends Global Privacy Control.
 */

const RENDERING = 'server-rendering.md';
const GPC = {
  'privacy.globalprivacycontrol.enabled': true,
  'privacy.globalprivacycontrol.functionality.enabled': true,
};

describeWithTool('browser/Alice', missingBrowser('chromium') ?? missingBrowser('firefox'), () => {
  let shop: PastedShop;
  let laptop: Browser;
  let phone: Browser;
  beforeAll(async () => {
    [shop, laptop, phone] = await Promise.all([pasteShop(), launch('chromium'), launch('firefox', GPC)]);
    for (const [name, code] of filesOf(RENDERING)) writeFileSync(join(shop.folder, name), code);
    const page = filesOf('after-login.md').get('index.html') ?? '';
    const [, live = ''] = /`(<script src="\/live\.js"[^`]*)`/.exec(readDocs(RENDERING)) ?? [];
    expect([blocksOf(readDocs(RENDERING), 'js').length, live]).toEqual([2, expect.stringContaining('defer')]);
    writeFileSync(join(shop.folder, 'index.html'), page.replace('defer></script>', `defer></script>${live}`));
    await shop.start();
  });
  afterAll(() => Promise.all([laptop?.close(), phone?.close(), shop?.stop()]));

  async function logIn(page: Page): Promise<void> {
    await page.type('input[name=customer]', 'alice');
    await Promise.all([page.waitForNavigation(), page.click('form button')]);
  }
  const hasOffers = async (page: Page): Promise<boolean> => (await page.$('#offers')) !== null;
  /** The page as the server renders it now. */
  const renders = (page: Page): Promise<boolean> =>
    page.evaluate(
      "fetch('/').then((r) => r.text()).then((t) => t.includes('id=\"offers\"'))",
    ) as Promise<boolean>;
  const sends = (page: Page): Promise<boolean> =>
    page.evaluate("fetch('/newsletter').then((r) => r.json()).then((a) => a.sends)") as Promise<boolean>;

  it('has one answer: her yes counts in the shop until her phone says no, and a proof says why', async () => {
    const home = await laptop.newPage();
    await home.goto(shop.url);
    expect([await hasOffers(home), await sends(home)]).toEqual([false, false]);
    await bannerOf(home).answer('accept');
    await home.reload();
    // The server renders for a visitor by the cookie, before anybody is logged in.
    expect([await hasOffers(home), await sends(home)]).toEqual([true, false]);
    await logIn(home);
    await expect.poll(() => sends(home), SEEN_WITHIN).toBe(true);
    await home.reload();
    expect(await hasOffers(home)).toBe(true);

    const mobile = await phone.newPage();
    await mobile.goto(shop.url);
    expect(await bannerOf(mobile).shown('banner')).toBe(false);
    await logIn(mobile);
    await expect.poll(() => sends(mobile), SEEN_WITHIN).toBe(false);
    expect([await hasOffers(mobile), await renders(mobile)]).toEqual([false, false]);
    // The laptop has not been touched: its open page, its server and its backend say no as well.
    await expect.poll(() => hasOffers(home), SEEN_WITHIN).toBe(false);
    expect([await renders(home), await sends(home)]).toEqual([false, false]);
    expect((await bannerOf(home).state()).granted).toEqual([]);

    const consent = new ConsentClient({ url: shop.gpd.url, key: shop.secret });
    const decision = await consent.canProcess({ principalId: 'alice', purpose: 'newsletter' });
    expect(decision).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
    const { seq, hash } = decision.proof ?? { seq: -1, hash: '' };
    const proof = await consent.proof(seq);
    const headers = { authorization: `Bearer ${shop.secret}` };
    const vkey = (await ask(shop.gpd.url, '/v1/ledger/vkey', { headers })).text.trim();
    const { entry } = verifyProof(proof, { vkey, seq, hash });
    expect(entry.type).toBe('consent.gpc-opt-out');
  });
});
