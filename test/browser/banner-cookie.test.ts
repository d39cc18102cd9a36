import type { Page } from 'puppeteer-core';
import { expect, it } from 'vitest';
import { bearer } from '../consent/app/support/api.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { ask } from '../support/http.ts';
import { describeBanner } from './support/banner-suite.ts';
import { AGENT, ANALYTICS, type Banner, bannerOf, DOMAIN, GATED } from './support/shop.ts';

/** One record for the hosts of a domain, and the signed state for the site's server (contract-2 section 20). */

const SNIPPET = { 'data-store': 'cookie', 'data-domain': DOMAIN };
const BOTH = [ANALYTICS, AGENT].toSorted();
const RECORD = 'gpd_record_shop';
const STATE = 'gpd_consent';

describeBanner('banner with its record in a cookie', [], (at) => {
  const address = (host: 'www' | 'app' = 'www', snippet = SNIPPET): string =>
    at.shop.page({ body: GATED, snippet }, host);

  async function enter(host: 'www' | 'app' = 'www', script = ''): Promise<string> {
    await at.enter(script);
    const url = address(host);
    await at.page.goto(url);
    return url;
  }
  const cookiesOf = async (page: Page): Promise<Record<string, string>> =>
    Object.fromEntries(
      ((await page.evaluate('document.cookie')) as string)
        .split('; ')
        .filter(Boolean)
        .map((text) => text.split('=') as [string, string]),
    );
  const cookies = (): ReturnType<typeof cookiesOf> => cookiesOf(at.page);
  const cookie = async (name: string) =>
    (await at.visitor.context.cookies()).find((one) => one.name === name);
  const granted = async (banner: Banner = at.banner) => (await banner.state()).granted.toSorted();
  const statePurposes = async (): Promise<readonly string[] | null> => {
    const payload = (await cookies())[STATE]?.split('.')[1];
    if (payload === undefined) return null;
    return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { p: string[] }).p.toSorted();
  };

  it('stores nothing before a choice, then one cookie of the domain and the state, and nothing else', async () => {
    await enter();
    await at.banner.waitFor('accept');
    expect(await cookies()).toEqual({});
    await at.banner.answer('accept');
    expect(Object.keys(await cookies()).sort()).toEqual([STATE, RECORD]);
    expect(await at.banner.stored()).toBe(0);
    for (const name of [STATE, RECORD])
      expect(await cookie(name)).toMatchObject({
        domain: DOMAIN,
        path: '/',
        secure: true,
        sameSite: 'Lax',
        httpOnly: false,
      });
    expect((await cookie(RECORD))?.size).toBeLessThanOrEqual(400);
    expect(await statePurposes()).toEqual(BOTH);
  });

  it('asks once for both hosts, and the other has proof and expiry', async () => {
    await enter();
    await at.banner.answer('accept');
    const here = await at.banner.state();
    await at.page.goto(address('app'));
    const there = await at.banner.state();
    expect(there).toMatchObject({ phase: 'decided', principalId: here.principalId });
    expect(there.granted.toSorted()).toEqual(BOTH);
    await at.page.waitForFunction('window.gated?.length === 3');
    const { proof } = await at.banner.receipt();
    expect(proof?.hash).toMatch(/^[0-9a-f]{64}$/);
    const ends = ({ purposes }: typeof here) =>
      purposes.map(({ until }) => Math.round((until ?? 0) / 60_000));
    for (const [i, end] of ends(there).entries()) expect(end - (ends(here)[i] ?? 0)).toBeLessThanOrEqual(1);
  });

  it('a withdrawal on one host ends here on the other, which stays open', async () => {
    await enter();
    await at.banner.answer('accept');
    const tab = await at.visitor.tab();
    await tab.goto(address('app'));
    const other = bannerOf(tab);
    expect(await granted(other)).toEqual(BOTH);
    await tab.evaluate("gpd.consent.withdraw('analytics')");
    await expect.poll(() => granted(), SEEN_WITHIN).toEqual([AGENT]);
  });

  it('a withdrawal leaves the state at once, before gpd has answered; then the state says it', async () => {
    await enter();
    await at.banner.answer('accept');
    await at.page.evaluate(`{ const real = fetch; window.fetch = (...call) => String(call[0]).endsWith('/withdraw')
      ? new Promise((go) => { window.send = () => go(real(...call)); }) : real(...call); }`);
    await at.page.evaluate("window.answer = gpd.consent.withdraw('analytics'); 0");
    await at.page.waitForFunction('window.send');
    expect(await statePurposes()).toBeNull();
    await at.page.evaluate('send(); answer');
    expect(await statePurposes()).toEqual([AGENT]);
  });

  it('gpd is away at a refusal: both hosts refuse, the state is gone, and the next page sends it', async () => {
    await enter();
    await at.banner.answer('accept');
    const { principalId } = await at.banner.state();
    const app = address('app');
    await at.shop.stop();
    expect(await at.page.evaluate('gpd.consent.withdraw()')).toMatchObject({ outcome: 'kept' });
    expect(await statePurposes()).toBeNull();
    await at.shop.restart();
    await at.page.goto(app);
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [], principalId });
    await expect
      .poll(async () => (await at.shop.api.check(principalId ?? '', ANALYTICS)).reason, SEEN_WITHIN)
      .toBe('withdrawn');
    await expect.poll(statePurposes, SEEN_WITHIN).toEqual([]);
  });

  it('renews the state on load, and removes it with the record after an erasure', async () => {
    const url = await enter();
    await at.banner.answer('accept');
    const { principalId } = await at.banner.state();
    await at.page.evaluate(`document.cookie = '${STATE}=old; Path=/; Domain=${DOMAIN}; Secure'`);
    await at.page.goto(url);
    await at.banner.state();
    expect(await statePurposes()).toEqual(BOTH);
    const session = await at.shop.api.session(principalId ?? '');
    expect((await at.shop.api.post('/v1/principals/erase', {}, session)).status).toBe(200);
    await at.page.goto(url);
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', principalId: null });
    expect(await cookies()).toEqual({});
  });

  it('a page that kept its record in localStorage takes it along', async () => {
    await at.enter();
    await at.page.goto(at.shop.page({}, 'www'));
    await at.banner.answer('accept');
    const { principalId } = await at.banner.state();
    expect(await cookies()).toEqual({});
    await at.page.goto(address());
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', principalId });
    expect(await granted()).toEqual(BOTH);
    expect(await at.banner.stored()).toBe(0);
    await at.page.goto(address('app'));
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', principalId });
  });

  it.each([
    ['of somebody else', '.other.localhost'],
    ['that is a public suffix', '.localhost'],
  ])('a domain %s: one line in the console, and localStorage keeps the choice', async (_what, domain) => {
    await at.enter();
    const lines: string[] = [];
    at.page.on('console', (line) => void (line.text().startsWith('gpd') && lines.push(line.text())));
    const url = address('www', { ...SNIPPET, 'data-domain': domain });
    await at.page.goto(url);
    await at.banner.answer('accept');
    await at.page.goto(url);
    expect(await granted()).toEqual(BOTH);
    expect(await cookies()).toEqual({});
    expect(await at.banner.stored()).toBe(1);
    await expect.poll(() => lines, SEEN_WITHIN).toHaveLength(2);
    expect(lines[0]).toContain(`refuses a cookie for data-domain ${domain}`);
  });

  it('a refusal by somebody whose record is gone removes the state that the site’s server still has', async () => {
    const url = await enter();
    await at.banner.answer('accept');
    // A browser may keep a cookie of the server for longer than one of a script.
    await at.page.evaluate(`document.cookie = '${RECORD}=; Path=/; Max-Age=0; Domain=${DOMAIN}; Secure'`);
    await at.page.goto(url);
    await at.banner.waitFor('accept');
    expect(await statePurposes()).toEqual(BOTH);
    await at.shop.stop();
    await at.banner.answer('reject');
    expect(await statePurposes()).toBeNull();
  });

  it('an answer that comes late does not bring back the state before a withdrawal on another host', async () => {
    await enter();
    await at.banner.answer('accept');
    await at.page.evaluate(`{ const real = fetch; window.fetch = async (...call) => {
      const answer = await real(...call);
      if (String(call[0]).endsWith('/withdraw')) await new Promise((go) => { window.deliver = go; });
      return answer;
    }; }`);
    await at.page.evaluate(`window.answer = gpd.consent.withdraw('${AGENT}'); 0`);
    await at.page.waitForFunction('window.deliver');
    const tab = await at.visitor.tab();
    await tab.goto(address('app'));
    await tab.evaluate(`gpd.consent.ready.then(() => gpd.consent.withdraw('${ANALYTICS}'))`);
    await expect.poll(() => statePurposes(), SEEN_WITHIN).toEqual([]);
    await at.page.evaluate('deliver(); answer');
    expect(await statePurposes()).toEqual([]);
  });

  it('a page that comes with an older state removes it while a refusal is unsent', async () => {
    const url = await enter(
      'app',
      `{ const real = fetch; window.fetch = (...call) => String(call[0]).endsWith('/withdraw') ? Promise.reject(new Error('away')) : real(...call); }`,
    );
    await at.banner.answer('accept');
    const older = (await cookies())[STATE] ?? '';
    expect(await at.page.evaluate('gpd.consent.withdraw()')).toMatchObject({ outcome: 'kept' });
    // The answer to an earlier request of the page renewed the state.
    await at.page.evaluate(
      `document.cookie = '${STATE}=${older}; Path=/; Max-Age=300; Domain=${DOMAIN}; Secure'`,
    );
    await at.page.goto(url);
    await at.banner.state();
    expect(await statePurposes()).toBeNull();
  });

  it('a browser that was never asked takes the account over, on both hosts', async () => {
    await enter();
    const session = await at.shop.api.session('cookie-customer');
    await at.shop.api.write('grant', { principalId: 'cookie-customer', purposes: BOTH });
    await at.page.evaluate(`gpd.consent.join('${session}')`);
    expect(await granted()).toEqual(BOTH);
    expect(await statePurposes()).toEqual(BOTH);
    await at.page.goto(address('app'));
    expect(await granted()).toEqual(BOTH);
  });
});

describeBanner('banner with more purposes than its cookie has room for', [], (at) => {
  const ids = Array.from({ length: 15 }, (_, i) => `a-purpose-with-a-long-name-${i}`);
  const address = (host: 'www' | 'app'): string => at.shop.page({ snippet: SNIPPET }, host);
  const size = async (): Promise<number> =>
    (await at.visitor.context.cookies()).find(({ name }) => name === RECORD)?.size ?? 0;

  async function enter(): Promise<void> {
    const { api } = at.shop;
    const headers = { ...bearer(api.keys.operator), 'content-type': 'application/json' };
    const purposes = ids.map((id) => ({ id, title: id, gpc: 'ignore' }));
    const body = JSON.stringify({ purposes });
    const saved = await ask(api.gpd.url, '/v1/consent/purposes', { method: 'PUT', headers, body });
    expect(saved.status).toBe(200);
    await at.enter();
    await at.page.goto(address('www'));
  }

  it('keeps the secret, and the ledger has the rest', async () => {
    await enter();
    await at.banner.answer('accept');
    expect(await size()).toBeLessThanOrEqual(400);
    expect(await at.banner.stored()).toBe(0);
    const { principalId } = await at.banner.state();
    await at.page.goto(address('app'));
    const there = await at.banner.state();
    expect(there).toMatchObject({ phase: 'decided', principalId });
    expect(there.granted).toEqual(expect.arrayContaining(ids));
  });

  it('a withdrawal on another host ends here, on the page where everything was accepted', async () => {
    await enter();
    await at.banner.answer('accept');
    const { principalId } = await at.banner.state();
    await at.shop.api.write('withdraw', { principalId: principalId ?? '', purposes: ids });
    await at.page.waitForFunction('gpd.consent.state().granted.length < 5');
  });

  it('loses no refusal that gpd has not heard: this host keeps it, the other grants nothing', async () => {
    await enter();
    await at.banner.answer('accept');
    const { principalId } = await at.banner.state();
    const [www, app] = [address('www'), address('app')];
    await at.shop.stop();
    await at.page.evaluate('gpd.consent.withdraw()');
    expect(await size()).toBeLessThanOrEqual(400);
    await at.shop.restart();
    await at.page.goto(app);
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    expect((await at.shop.api.check(principalId ?? '', ids[0])).reason).toBe('granted');
    // The ledger's state would grant to the site's server what was refused here.
    expect((await at.visitor.context.cookies()).map(({ name }) => name)).not.toContain(STATE);
    await at.page.goto(www);
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    await expect
      .poll(async () => (await at.shop.api.check(principalId ?? '', ids[0])).reason, SEEN_WITHIN)
      .toBe('withdrawn');
    await expect.poll(() => at.banner.stored(), SEEN_WITHIN).toBe(0);
    await at.page.goto(app);
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
  });
});
