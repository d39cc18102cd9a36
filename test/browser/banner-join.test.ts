import { expect, it } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import { AGENT, ANALYTICS, type Banner, bannerOf, GATED } from './support/shop.ts';

/** A person who logs in: from then on this browser and the account answer as one (contract-2 section 20). */

const BOTH = [ANALYTICS, AGENT];
let people = 0;

describeBanner('banner of a person who logs in', [], (at) => {
  let account: string;
  let session: string;

  /** A visitor on a page, and a session of an account that has not chosen yet. */
  async function enter(script = ''): Promise<string> {
    people += 1;
    account = `customer-${people}`;
    session = await at.shop.api.session(account);
    await at.enter(script.replaceAll('SESSION', session));
    const url = at.shop.page({ body: GATED });
    await at.page.goto(url);
    return url;
  }

  const join = (token = session): Promise<Record<string, unknown>> =>
    at.page.evaluate(`gpd.consent.ready.then(() => gpd.consent.join('${token}'))`) as never;
  const accountGrants = async (purpose = ANALYTICS): Promise<boolean> =>
    (await at.shop.api.check(account, purpose)).allowed;
  const grant = (): Promise<unknown> => at.shop.api.write('grant', { principalId: account, purposes: BOTH });
  const refuse = (): Promise<unknown> =>
    at.shop.api.write('withdraw', { principalId: account, purposes: BOTH });
  const granted = async (banner: Banner = at.banner) => (await banner.state()).granted.toSorted();
  /** A refusal counts if both choices are of one second, so the tests let a second pass. */
  async function secondPasses(): Promise<void> {
    const second = (): number => Math.floor(Date.now() / 1000);
    const before = second();
    await expect.poll(second, SEEN_WITHIN).toBeGreaterThan(before);
  }

  it('is not asked where the account has answered: the open banner closes, and what waits runs', async () => {
    await enter();
    await grant();
    await at.banner.waitFor('accept');
    expect(await join()).toEqual({ joined: true, principalId: account, joinedAt: expect.any(String) });
    await at.banner.waitFor('reopen');
    expect(await granted()).toEqual(BOTH.toSorted());
    await at.page.waitForFunction('window.gated?.length === 3');
    const { principalId, purposes, proof } = await at.banner.receipt();
    expect(principalId).toMatch(/^b_/);
    expect(purposes).toHaveLength(2);
    // A tenant that wants proof from its ledger takes the account's.
    expect(proof).toMatchObject({ seq: expect.any(Number) });
    // A choice here counts for the account at once, also on the next page.
    await at.page.reload();
    expect(await granted()).toEqual(BOTH.toSorted());
    await at.page.evaluate('gpd.consent.withdraw()');
    expect(await accountGrants()).toBe(false);
  });

  it('joins before the banner is ready', async () => {
    await enter(
      "addEventListener('DOMContentLoaded', () => { window.answer = gpd.consent.join('SESSION'); })",
    );
    expect(await at.page.evaluate('answer')).toMatchObject({ joined: true, principalId: account });
    await at.banner.answer('accept');
    expect(await accountGrants()).toBe(true);
  });

  it('hands an account that was never asked what this browser chose', async () => {
    await enter();
    await at.banner.answer('accept');
    expect(await accountGrants()).toBe(false);
    expect(await join()).toMatchObject({ joined: true });
    expect(await accountGrants()).toBe(true);
    expect(await granted()).toHaveLength(2);
  });

  it('the newest choice wins: a yes of the account after a no here, and the other way round', async () => {
    await enter();
    await at.banner.answer('reject');
    await secondPasses();
    await grant();
    await join();
    expect(await granted()).toHaveLength(2);
    await secondPasses();
    await at.page.evaluate('gpd.consent.withdraw()');
    expect(await granted()).toEqual([]);
    expect(await accountGrants()).toBe(false);
  });

  it('an older yes of the account does not end a no here', async () => {
    await enter();
    await grant();
    await secondPasses();
    await at.banner.answer('reject');
    await join();
    expect(await granted()).toEqual([]);
    expect(await accountGrants()).toBe(false);
  });

  it('twice and in two tabs at once: one principal, and no tab asks', async () => {
    const url = await enter();
    await grant();
    const tab = await at.visitor.tab();
    await tab.goto(url);
    const call = `gpd.consent.join('${session}')`;
    const answers = await Promise.all([at.page.evaluate(call), at.page.evaluate(call), tab.evaluate(call)]);
    for (const answer of answers) expect(answer).toMatchObject({ joined: true, principalId: account });
    const other = bannerOf(tab);
    await expect.poll(() => granted(other), SEEN_WITHIN).toHaveLength(2);
    await expect.poll(() => granted(), SEEN_WITHIN).toHaveLength(2);
    expect((await other.state()).principalId).toBe((await at.banner.state()).principalId);
    // The principal that was stored is joined: a choice by it counts for the account.
    await tab.evaluate('gpd.consent.withdraw()');
    expect(await accountGrants()).toBe(false);
  });

  it('a session that is over: said, and nothing is stored', async () => {
    await enter();
    expect((await at.shop.api.post('/v1/principals/erase', {}, session)).status).toBe(200);
    expect(await join()).toEqual({ joined: false, status: 401, error: 'unauthenticated' });
    expect(await at.banner.stored()).toBe(0);
    expect(await at.banner.shown('accept')).toBe(true);
  });

  it('after the account was erased this browser keeps its no, and asks a new account nothing', async () => {
    await enter();
    await at.banner.answer('reject');
    await join();
    expect((await at.shop.api.post('/v1/principals/erase', {}, session)).status).toBe(200);
    await at.page.reload();
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
    session = await at.shop.api.session(account);
    expect(await join()).toMatchObject({ joined: true });
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
  });

  it('an account that was erased and has not chosen since: its person is asked, and answers once', async () => {
    await enter();
    await grant();
    expect((await at.shop.api.post('/v1/principals/erase', {}, session)).status).toBe(200);
    session = await at.shop.api.session(account);
    await join();
    const first = (await at.banner.state()).principalId;
    await at.page.reload();
    await join();
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', principalId: first });
    await at.banner.answer('reject');
    await at.page.reload();
    await join();
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [], principalId: first });
  });

  it('gpd is away: said, nothing is stored, and the next call joins', async () => {
    await enter();
    await at.banner.waitFor('accept');
    await at.shop.stop();
    expect(await join()).toEqual({ joined: false, status: 0, error: 'unreachable' });
    expect(await at.banner.stored()).toBe(0);
    await at.shop.restart();
    expect(await join()).toMatchObject({ joined: true });
  });

  it('a withdrawal waits for no join: it is in force at once, and sent after it', async () => {
    await enter();
    await at.banner.answer('accept');
    const { principalId } = await at.banner.state();
    await at.page.evaluate(`{ const real = fetch; window.fetch = (...call) => String(call[0]).endsWith('/join')
      ? new Promise((go) => { window.send = () => go(real(...call)); }) : real(...call); }`);
    await at.page.evaluate(`window.joining = gpd.consent.join('${session}'); 0`);
    await at.page.waitForFunction('window.send');
    await at.page.evaluate(`window.withdrawn = gpd.consent.withdraw('${ANALYTICS}'); 0`);
    expect(await granted()).toEqual([AGENT]);
    await at.page.evaluate('send(); joining');
    expect(await at.page.evaluate('withdrawn')).toEqual({ outcome: 'recorded', problem: null });
    expect(await granted()).toEqual([AGENT]);
    expect((await at.shop.api.check(principalId ?? '', ANALYTICS)).reason).toBe('withdrawn');
    expect(await accountGrants()).toBe(false);
  });

  it('a withdrawal elsewhere ends here while the page stays open', async () => {
    await enter();
    await at.banner.answer('accept');
    await join();
    await at.page.evaluate("window.told = []; gpd.consent.on('change', (state) => told.push(state))");
    await secondPasses();
    await refuse();
    await at.page.waitForFunction('told.length > 0');
    expect(await at.page.evaluate('told')).toEqual([
      expect.objectContaining({ granted: [], phase: 'decided', recorded: true }),
    ]);
  });
});
