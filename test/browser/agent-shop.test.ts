import type { Browser, BrowserContextOptions, Page, Request } from 'playwright-core';
import { afterEach, expect, it } from 'vitest';
import { started } from '../support/started.ts';
import { startAgentShop } from './support/agent-shop.ts';
import { describeInChromium, launchShell } from './support/chromium.ts';

/**
 * Twenty checks that the prompt of docs/coding-agents.md does not know, of the shop in agent-shop/,
 * or of the one in the folder AGENT_SHOP.
 */

const GPC_ON = "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true })";
const PASSWORDS = { alice: 'wonderland', bob: 'builder' };
const OFFERS = 'Offers for you';
const FILM = 'iframe[src*="video.html"]';

interface Rows {
  readonly subscribers: readonly string[];
  readonly orders: readonly { readonly order: number; readonly visitor: string | null }[];
}

describeInChromium('browser/a shop integrated by a coding agent', () => {
  const shop = started(() => startAgentShop(process.env['AGENT_SHOP']));
  const browser: Browser = started(launchShell);
  const faults: string[] = [];
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });

  async function visitor(options: BrowserContextOptions = {}, script?: string): Promise<Page> {
    const page = await (await browser.newContext(options)).newPage();
    page.on('pageerror', ({ message }) => faults.push(message));
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) faults.push(message.text());
    });
    if (script !== undefined) await page.addInitScript(script);
    await page.goto(shop.url, { waitUntil: 'networkidle' });
    return page;
  }
  /** A page that is reloaded before gpd has the choice asks again. */
  async function choose(page: Page, choice: 'accept' | 'reject'): Promise<void> {
    const isChoice = (request: Request) =>
      request.method() === 'POST' && request.url().startsWith(`${shop.gpdUrl}/v1/consent/`);
    const recorded = page.waitForResponse(
      (response) => isChoice(response.request()) && response.status() === 201,
    );
    await page.getByTestId(`consent-${choice}`).click();
    await recorded;
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  }
  const reload = (page: Page) => page.reload({ waitUntil: 'networkidle' });
  /** While the page reloads there is nothing to ask. */
  const evaluate = (page: Page, script: string) => page.evaluate(script).catch(() => 'reloading');
  const counted = (page: Page) => evaluate(page, 'window.counted === true');
  const withdraw = (page: Page) => page.evaluate('void gpd.consent.withdraw()');
  const offers = (page: Page) => page.locator('#offers').count();
  const htmlFor = async (page: Page) => (await page.context().request.get(shop.url)).text();
  const json = async <T>(path: string) => (await (await fetch(`${shop.url}${path}`)).json()) as T;
  const rows = () => json<Rows>('/rows');
  const newsletter = () => json<readonly string[]>('/newsletter');
  const visitorOfLastOrder = async () => (await rows()).orders.at(-1)?.visitor;
  async function expectNothing(page: Page): Promise<void> {
    expect([await counted(page), await offers(page), await page.locator(FILM).count()]).toEqual([
      false,
      0,
      0,
    ]);
    expect(await htmlFor(page)).not.toContain(OFFERS);
  }
  async function logIn(page: Page, customer: keyof typeof PASSWORDS): Promise<void> {
    await page.locator('input[name=customer]').fill(customer);
    await page.locator('input[name=password]').fill(PASSWORDS[customer]);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText(`Hello ${customer}`).waitFor();
  }
  const order = async (page: Page): Promise<void> => {
    const before = (await rows()).orders.length;
    await page.getByRole('button', { name: 'Order', exact: true }).click();
    await expect.poll(async () => (await rows()).orders.length).toBe(before + 1);
  };
  async function subscribe(page: Page, email: string): Promise<void> {
    await page.locator('input[name=email]').fill(email);
    await page.getByRole('button', { name: 'Subscribe' }).click();
    await expect.poll(async () => (await rows()).subscribers).toContain(email);
  }
  /** A program presses the buttons here, and no other browser takes over its yes: hers comes from the backend. */
  const grantAsAlice = () => shop.command('consent', 'grant', 'shop', 'alice', 'newsletter', 'offers');
  async function aliceWithOffers(): Promise<Page> {
    const page = await visitor();
    await logIn(page, 'alice');
    await expect.poll(() => evaluate(page, 'gpd.consent.state().granted.includes("offers")')).toBe(true);
    await reload(page);
    expect(await offers(page)).toBe(1);
    return page;
  }

  it('1: before a choice nothing runs, and nothing personal is in the page', async () => {
    const page = await visitor();
    await page.getByTestId('consent-accept').waitFor();
    await expectNothing(page);
  });

  it('2: the policy is strict and names gpd alone', async () => {
    const policy = (await fetch(shop.url)).headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/(?:script|default)-src/);
    expect(policy).not.toMatch(/unsafe-|\*/);
    for (const [source] of policy.matchAll(/https?:[^\s;]*/g))
      expect([shop.url, shop.gpdUrl]).toContain(source);
  });

  it('3: no secret is in the page or in its scripts', async () => {
    const page = await visitor();
    const urls = await page.evaluate('performance.getEntriesByType("resource").map(({ name }) => name)');
    const scripts = (urls as string[]).filter((name) => name.startsWith(shop.url));
    for (const name of [shop.url, ...scripts])
      expect(await (await fetch(name)).text()).not.toMatch(/gpd_sk_|whsec_/);
  });

  it('4: no cache keeps the page of a visitor for another', async () => {
    expect((await fetch(shop.url)).headers.get('cache-control')).toMatch(/no-store/);
  });

  it('5: a refusal holds on the next page, which does not ask again', async () => {
    const page = await visitor();
    await choose(page, 'reject');
    await reload(page);
    await expectNothing(page);
    expect(await page.getByTestId('consent-accept').isVisible()).toBe(false);
  });

  it('6: after a refusal an order is taken, without a verdict', async () => {
    const page = await visitor();
    const urls: string[] = [];
    page.on('request', (request) => urls.push(request.url()));
    await choose(page, 'reject');
    await order(page);
    await page.getByText(/Order \d/).waitFor();
    expect(await visitorOfLastOrder()).toBeNull();
    expect(urls.filter((url) => url.includes('/_fp/'))).toEqual([]);
  });

  it('7: a yes starts the statistics and the film', async () => {
    const page = await visitor();
    const film = page.waitForRequest(/video\.html/, { timeout: 0 });
    await choose(page, 'accept');
    await expect.poll(() => counted(page)).toBe(true);
    await film;
    expect(await page.locator(FILM).count()).toBe(1);
  });

  it('8: after a yes the server renders the offers', async () => {
    const page = await visitor();
    await choose(page, 'accept');
    await expect.poll(() => htmlFor(page)).toContain('id="offers"');
  });

  it('9: after a yes the backend fetches the verdict of an order', async () => {
    const page = await visitor();
    await choose(page, 'accept');
    await reload(page);
    await expect
      .poll(
        async () => {
          await order(page);
          return (await rows()).orders.some((row) => row.visitor === 'undeclared_automation');
        },
        { interval: 500 },
      )
      .toBe(true);
  });

  it('10: a withdrawal ends the statistics and the offers, in the open page and on the next', async () => {
    const page = await visitor();
    await choose(page, 'accept');
    await reload(page);
    await expect.poll(() => counted(page)).toBe(true);
    expect(await offers(page)).toBe(1);
    await withdraw(page);
    await expect.poll(() => counted(page)).toBe(false);
    await expect.poll(() => offers(page)).toBe(0);
    await reload(page);
    await expectNothing(page);
  });

  it('11: Global Privacy Control is a no, and nobody is asked', async () => {
    const page = await visitor({ extraHTTPHeaders: { 'sec-gpc': '1' } }, GPC_ON);
    await expectNothing(page);
    expect(await page.getByTestId('consent-accept').isVisible()).toBe(false);
  });

  it('12: a forged cookie is no yes', async () => {
    const cookie = 'gpd_consent=eyJhbGciOiJub25lIn0.eyJwdXJwb3NlcyI6WyJvZmZlcnMiXX0.';
    expect(await (await fetch(shop.url, { headers: { cookie } })).text()).not.toContain(OFFERS);
  });

  it('13: a guest gets nobody’s session', async () => {
    const page = await visitor();
    const answers: Promise<{ readonly request: Request; readonly text: string }>[] = [];
    page.on('response', (response) => {
      if (!response.url().startsWith(shop.url)) return;
      const text = response.text().catch(() => '');
      answers.push(text.then((found) => ({ request: response.request(), text: found })));
    });
    await logIn(page, 'alice');
    await page.waitForLoadState('networkidle');
    const found = (await Promise.all(answers)).filter(({ text }) => text.includes('gpd_ps_'));
    expect(found.length).toBeGreaterThan(0);
    for (const { request } of found) {
      const { cookie, ...headers } = request.headers();
      const answer = await fetch(request.url(), {
        method: request.method(),
        headers,
        body: request.postData(),
      });
      expect(await answer.text()).not.toContain('gpd_ps_');
    }
  });

  it('14: a customer’s answer holds in each browser that logs in', async () => {
    await grantAsAlice();
    await aliceWithOffers();
    await aliceWithOffers();
  });

  it('15: the newsletter goes to those who agreed', async () => {
    await grantAsAlice();
    for (const customer of ['alice', 'bob'] as const) {
      const page = await visitor();
      await logIn(page, customer);
      await subscribe(page, `${customer}@shop.example`);
    }
    expect(await newsletter()).toEqual(['alice@shop.example']);
  });

  it('16: a withdrawal in one browser ends the newsletter, and the offers in another', async () => {
    await grantAsAlice();
    const laptop = await aliceWithOffers();
    const phone = await aliceWithOffers();
    await withdraw(phone);
    await expect.poll(newsletter).toEqual([]);
    await expect.poll(() => offers(laptop)).toBe(0);
  });

  it('17: a forged event deletes nothing, an erasure the person’s row', async () => {
    const forged = await fetch(`${shop.url}/hooks`, { method: 'POST', body: '{"type":"subject.erased"}' });
    expect(forged.status).toBeGreaterThanOrEqual(400);
    expect(forged.status).toBeLessThan(500);
    expect((await rows()).subscribers).toEqual(['alice@shop.example', 'bob@shop.example']);
    await shop.command('erase', '--tenant', 'shop', '--principal', 'alice', '--yes');
    await expect.poll(async () => (await rows()).subscribers).toEqual(['bob@shop.example']);
  });

  it('18: an erased visit takes its verdict out of the order', async () => {
    const page = await visitor();
    const verdicts: Promise<string>[] = [];
    page.on('response', (response) => {
      if (response.url().includes('/_fp/i/v1'))
        verdicts.push(response.json().then(({ requestId }) => requestId));
    });
    await choose(page, 'accept');
    await reload(page);
    const earlier = (await rows()).orders.length;
    // A shop may take the order first, and learn the verdict later.
    const judged = async () =>
      (await rows()).orders.find((row) => row.order > earlier && row.visitor !== null);
    await expect
      .poll(
        async () => {
          await order(page);
          return judged();
        },
        { interval: 500 },
      )
      .toBeDefined();
    const { order: number } = (await judged())!;
    for (const request of await Promise.all(verdicts))
      await shop.command('erase', '--tenant', 'shop', '--request', request, '--yes');
    await expect
      .poll(async () => (await rows()).orders[number - 1])
      .toEqual({ order: number, visitor: null });
  });

  it('19: an account that is deleted is erased in gpd too', async () => {
    await shop.command('consent', 'grant', 'shop', 'bob', 'newsletter');
    const page = await visitor();
    await logIn(page, 'bob');
    await page.waitForLoadState('networkidle');
    await page.getByRole('button', { name: 'Delete my account' }).click();
    await expect.poll(async () => (await rows()).subscribers).toEqual([]);
    const decision = () =>
      fetch(`${shop.gpdUrl}/v1/consent/can-process`, {
        method: 'POST',
        headers: { authorization: `Bearer ${shop.secret}`, 'content-type': 'application/json' },
        body: '{"principalId":"bob","purpose":"newsletter"}',
      }).then((answer) => answer.json());
    await expect.poll(decision).toMatchObject({ allowed: false, reason: 'erased' });
  });

  it('20: no page broke its policy, and without gpd the shop logs in and sells', async () => {
    expect(faults).toEqual([]);
    await shop.gpd.stop();
    const page = await (await browser.newContext()).newPage();
    await page.goto(shop.url);
    await logIn(page, 'alice');
    await order(page);
    expect(await htmlFor(page)).not.toContain(OFFERS);
    expect(await page.getByText('Hello alice').isVisible()).toBe(true);
  });
});
