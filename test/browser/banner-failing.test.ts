import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { expect, it, vi } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import { AGENT, ANALYTICS, type ShopPage } from './support/shop.ts';

/** The server is away, silent, or says no: nothing is collected, the page works, the choice is asked again. */

describeBanner('banner without its server', [], (at) => {
  async function open(options: ShopPage): Promise<string> {
    await at.enter(`window.faults = [];
        for (const name of ['error', 'unhandledrejection']) addEventListener(name, (e) => faults.push(name + ' ' + e.message));`);
    const url = at.shop.page(options);
    await at.page.goto(url);
    return url;
  }
  const gpdUrl = (): string => `http://localhost:${at.shop.api.gpd.port}`;

  async function expectUnharmed(): Promise<void> {
    expect(await at.banner.receipt()).toMatchObject({ purposes: [] });
    expect(await at.page.evaluate("document.querySelector('gpd-consent')")).toBeNull();
    expect(await at.banner.stored()).toBe(0);
    expect(await at.page.evaluate('faults')).toEqual([]);
    await at.page.click('#first');
    expect(at.page.url()).toContain('#end');
  }

  it('away: the page stands, nothing is granted; back: the opener asks', async () => {
    await at.shop.stop();
    await open({ own: true, snippet: { 'data-server': gpdUrl() } });
    expect(await at.banner.state()).toMatchObject({
      phase: 'unavailable',
      problem: 'unreachable',
      granted: [],
    });
    await expectUnharmed();
    expect(await at.page.evaluate('gpd.consent.withdraw()')).toMatchObject({ outcome: 'failed' });
    await at.shop.restart();
    await at.page.click('#opener');
    await at.banner.waitFor('save');
    await at.banner.press('reject-all');
    await at.banner.waitFor('reopen');
    expect(await at.banner.state()).toMatchObject({ phase: 'decided', granted: [] });
  });

  it('silent: after six seconds nothing is granted', async () => {
    const silent: Server = createServer(() => {}).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const address = `http://localhost:${(silent.address() as AddressInfo).port}`;
    await open({ own: true, connect: address, snippet: { 'data-server': address } });
    expect(await at.banner.state()).toMatchObject({ phase: 'unavailable', problem: 'unreachable' });
    await expectUnharmed();
    silent.close();
  });

  /** @returns the console lines of the page that begin with gpd */
  async function openAndHear(snippet: Record<string, string>): Promise<string[]> {
    await at.enter('window.faults = []');
    const lines: string[] = [];
    at.page.on('console', (line) => void (line.text().startsWith('gpd') && lines.push(line.text())));
    await at.page.goto(at.shop.page({ snippet }));
    await at.banner.state();
    await vi.waitFor(() => expect(lines).toHaveLength(1), SEEN_WITHIN);
    return lines;
  }

  const unknownSecret = 'x'.repeat(43);
  it.each([
    ['unknown', `gpd_pk_${unknownSecret}`, 'unauthenticated', 'is not known here'],
    ['misspelt', 'gpd_pk_nonsense', 'invalid-key', 'is not a publishable key'],
    ['missing', '', 'no-key', 'Add data-key'],
    ['secret', `gpd_sk_${unknownSecret}`, 'secret-key', 'Revoke it'],
    ['an operator’s', `gpd_op_${unknownSecret}`, 'secret-key', 'Revoke it'],
  ])(
    'a key that is %s: said in the state and in one line, and nothing shown',
    async (_what, key, problem, says) => {
      const lines = await openAndHear({ 'data-key': key });
      expect(await at.banner.state()).toMatchObject({ phase: 'unavailable', problem });
      expect(lines).toEqual([expect.stringContaining(says)]);
      expect(lines[0]).not.toContain('x'.repeat(9));
      await expectUnharmed();
      const banner =
        "performance.getEntriesByType('resource').filter((e) => e.name.includes('/v1/consent/')).length";
      expect(await at.page.evaluate(banner)).toBe(problem === 'unauthenticated' ? 1 : 0);
    },
  );

  it('as a tag manager inserts it, the key is in the address', async () => {
    await at.enter('window.faults = []');
    const { publishable } = at.shop.api.keys;
    await at.page.goto(
      at.shop.page({ snippet: { src: `${gpdUrl()}/v1/embed.js?key=${publishable}`, 'data-key': '' } }),
    );
    await at.banner.answer('accept');
    expect((await at.banner.state()).granted).toHaveLength(2);
  });

  it('an origin that is not registered: said in one line of the console', async () => {
    await at.enter('window.faults = []');
    const lines: string[] = [];
    at.page.on('console', (line) => void (line.text().startsWith('gpd') && lines.push(line.text())));
    await at.page.goto(at.shop.page().replace('localhost', '127.0.0.1'));
    expect(await at.banner.state()).toMatchObject({ phase: 'unavailable', problem: 'unreachable' });
    await vi.waitFor(() => expect(lines).toHaveLength(1), SEEN_WITHIN);
    expect(lines[0]).toContain('http://127.0.0.1:');
    expect(lines[0]).toContain('is not one of the tenant’s origins');
  });

  it('no secure context: nobody is asked, because nobody could be named', async () => {
    await at.enter("Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined });");
    await at.page.goto(at.shop.page());
    expect(await at.banner.state()).toMatchObject({ phase: 'unavailable', problem: 'insecure-context' });
    expect(await at.banner.receipt()).toMatchObject({ purposes: [] });
  });

  it('away when Accept is pressed: said so, nothing granted, asked on; back: it is taken', async () => {
    await open({ own: true, snippet: { 'data-server': gpdUrl() } });
    await at.banner.waitFor('banner');
    await at.shop.stop();
    await at.banner.press('accept');
    await at.page.waitForSelector('gpd-consent >>> .error', { visible: true });
    expect(await at.banner.text('.layer .error')).toContain('nothing is collected');
    expect(await at.banner.state()).toMatchObject({ phase: 'asking', granted: [] });
    expect(await at.banner.stored()).toBe(0);
    await at.shop.restart();
    await at.banner.answer('accept');
    expect((await at.banner.state()).granted.sort()).toEqual([ANALYTICS, AGENT].sort());
  });

  it('away when a withdrawal is made: in force here at once, and told on the next page', async () => {
    const url = await open({ own: true, snippet: { 'data-server': gpdUrl() } });
    await at.banner.answer('accept');
    const id = (await at.banner.state()).principalId ?? '';
    await at.shop.stop();
    expect(await at.page.evaluate('gpd.consent.withdraw()')).toEqual({
      outcome: 'kept',
      problem: 'unreachable',
    });
    expect((await at.banner.receipt()).purposes).toEqual([]);
    await at.shop.restart();
    expect(await at.shop.api.check(id)).toMatchObject({ allowed: true });
    await at.page.goto(url);
    await vi.waitFor(
      async () => expect(await at.shop.api.check(id)).toMatchObject({ reason: 'withdrawn' }),
      SEEN_WITHIN,
    );
    await vi.waitFor(async () => {
      expect(await at.page.evaluate('JSON.parse(Object.values(localStorage)[0]).pending')).toEqual([]);
    }, SEEN_WITHIN);
    expect(await at.shop.api.events(id)).toHaveLength(4);
  });

  it('away when the settings are opened: the question comes back, and a no is in force at once', async () => {
    await open({});
    await at.banner.answer('accept');
    expect((await at.banner.state()).granted).toHaveLength(2);
    await at.shop.stop();
    await at.banner.press('reopen');
    await at.banner.answer('reject');
    expect((await at.banner.state()).granted).toEqual([]);
    expect(await at.banner.settingsOpen()).toBe(false);
    expect(await at.page.evaluate('faults')).toEqual([]);
    await at.shop.restart();
    await at.page.reload();
    await at.banner.press('reopen');
    await at.banner.waitFor('save');
  });

  it('without its second file a choice in a cookie is known, and a no withdraws at once', async () => {
    const src = `${at.shop.origin}/alone/v1/embed.js`;
    await open({ snippet: { src, 'data-server': gpdUrl(), 'data-store': 'cookie' } });
    await at.banner.answer('accept');
    await at.page.reload();
    await vi.waitFor(async () => expect((await at.banner.state()).granted).toHaveLength(2), SEEN_WITHIN);
    await at.banner.press('reopen');
    await at.banner.answer('reject');
    expect((await at.banner.state()).granted).toEqual([]);
    await at.page.reload();
    await vi.waitFor(async () => expect((await at.banner.state()).phase).toBe('decided'), SEEN_WITHIN);
    expect((await at.banner.state()).granted).toEqual([]);
  });

  it('a refusal that the server was never told of stands before a later grant', async () => {
    await open({ own: true, snippet: { 'data-server': gpdUrl() } });
    await at.banner.waitFor('banner');
    await at.shop.stop();
    await at.banner.answer('reject');
    await vi.waitFor(async () => expect(await at.banner.text('.heard')).toContain('applies here'));
    await at.banner.press('reopen');
    await at.banner.press('accept-all');
    await at.page.waitForSelector('gpd-consent >>> dialog .error', { visible: true });
    expect((await at.banner.state()).granted).toEqual([]);
    await at.shop.restart();
    await at.banner.press('accept-all');
    await at.banner.waitGone('save');
    const { principalId } = await at.banner.state();
    expect((await at.shop.api.events(principalId)).map(({ type }) => type)).toEqual([
      'consent.granted',
      'consent.granted',
      'consent.denied',
      'consent.denied',
    ]);
  });
});
