import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { SHOP_WORDS } from '../../src/demo/shop-words.ts';
import { VERDICT_WORDS } from '../../src/ingest/verdict/verdict-words.ts';
import { PEOPLE_LANGUAGES } from '../../src/lib/languages.ts';
import { ingestResponseSchema } from '../../src/schema/responses.ts';
import { started } from '../support/started.ts';
import { describeInChromium, useTabs } from './support/chromium.ts';
import { startDemo } from './support/demo.ts';

const WATCH = `window.violations = [];
addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + ' ' + e.blockedURI));`;

describeInChromium('browser/demo', () => {
  const demo = started(() => startDemo());
  const { openTab, thrown, requests } = useTabs();
  let page: Page;

  async function open(options: BrowserContextOptions = {}, url = demo.shop): Promise<void> {
    page = await openTab(url, options, options.javaScriptEnabled === false ? undefined : WATCH);
  }
  const requestLines = (): string[] =>
    requests.map(({ method, url }) => `${method} ${new URL(url).pathname}`);

  const press = (hook: string): Promise<void> => page.getByTestId(hook).click();
  const read = async (hook: string): Promise<string> => (await page.getByTestId(hook).textContent()) ?? '';
  const result = async () => [await read('result-reason'), await read('result-status')];
  const json = async () => JSON.parse(await read('result-json'));

  const idle = (): Promise<void> =>
    page.locator('button[data-action]:disabled').first().waitFor({ state: 'detached' });

  /** Waits for the answer to a press: the buttons are disabled while one is on its way. */
  async function pressAndWait(hook: string): Promise<void> {
    await press(hook);
    await idle();
    await expect.poll(() => read('result-reason')).not.toBe('');
  }

  /** Acts, and waits for the server's answer to the person as long as the test may last. */
  const answeredBy = (act: Promise<void>): Promise<unknown> =>
    Promise.all([
      page.waitForResponse((reply) => new URL(reply.url()).pathname === '/my-data', { timeout: 0 }),
      act,
    ]);

  const identifyLines = (): string[] => requestLines().filter((line) => line.includes('/_fp/'));

  it('identifies after the grant, recognises on the second look, and forgets how after a withdrawal', async () => {
    await open();
    await pressAndWait('consent-accept');
    expect(await result()).toEqual(['ok', 'HTTP 200']);
    const first = ingestResponseSchema.parse(await json());
    expect(first).toMatchObject({ confidence: 0.6, visitorId: expect.stringMatching(/^[\w-]{22}$/) });
    expect(await read('result-visitor')).toBe(first.visitorId);
    expect(await read('result-confidence')).toBe('0.6');

    await pressAndWait('check-again');
    expect(await read('result-confidence')).toBe('0.99');
    expect(await read('result-visitor')).toBe(first.visitorId);

    await pressAndWait('consent-withdraw');
    expect(await result()).toEqual(['consent-missing', 'not sent']);
    // The page describes the data of earlier visits, and one press deletes it.
    const status = page.locator('[data-field="status"]');
    expect(await status.textContent()).toMatch(
      /^Nothing was sent: you have withdrawn your consent\. Your last visit is still held, until \d+ \w+ \d{4}/,
    );
    const forget = page.getByTestId('forget');
    expect(await forget.textContent()).toContain('Erase this visit');
    const resultText = await page.locator('[data-part="result"]').textContent();
    expect(resultText).not.toMatch(/did not agree|The server refused/);
    expect(resultText).toContain('Nothing was sent.');
    // A refused bundle says that the consent was withdrawn, and leaves the visit erasable.
    await pressAndWait('ask-anyway');
    expect(await page.locator('[data-field="consent"]').textContent()).toBe('You withdrew your consent.');
    await forget.locator('summary').click();
    await press('forget-now');
    expect(await read('receipt')).toMatch(/^era_/);
    expect(await forget.isVisible()).toBe(false);
    // No visit is left that a person could review.
    expect(await page.getByTestId('contest').isVisible()).toBe(false);
    const before = identifyLines().length;
    await pressAndWait('ask-anyway');
    expect(await result()).toEqual(['consent-missing', 'HTTP 451']);
    expect(identifyLines().length).toBeGreaterThan(before);
    expect(await json()).toMatchObject({ class: 'unknown', visitorId: null, confidence: 0 });
    expect(thrown).toEqual([]);
    expect(await page.evaluate('violations')).toEqual([]);
    await page.reload();
    await expect.poll(() => status.textContent()).toMatch(/Decisions of earlier visits are held for 90 days/);
  });

  it('shows why by the look-up of the backend, in plain words', async () => {
    await open();
    await pressAndWait('consent-accept');
    // A driven, headless Chromium is what this suite is, and the server says so.
    expect(await json()).toMatchObject({ class: 'undeclared_automation', smartSignals: { bot: true } });
    expect(await read('result-class')).toBe('An automated visit');
    const rulesOf = (): Promise<string[]> => page.locator('[data-part="rules"] li').allInnerTexts();
    await expect.poll(async () => (await rulesOf()).some((line) => /A1 · 0\.90/.test(line))).toBe(true);
    const rules = await rulesOf();
    // One fact, told once: M7 and W5 both say that graphics are drawn in software.
    expect(rules.filter((line) => /drawn in software/.test(line)).length).toBeLessThan(2);
    expect(await page.locator('[data-field="backend-note"]').textContent()).toMatch(
      /weights add up to \d\.\d\d; the highest score is 1/,
    );
  });

  it('links to a page that shows that visit and what this browser agreed to, and withdraws it', async () => {
    await open();
    await pressAndWait('consent-accept');
    const { requestId } = ingestResponseSchema.parse(await json());
    await expect.poll(() => page.getByTestId('my-data').getAttribute('href')).toMatch(/#visit=[\w-]+$/);
    await press('my-data');
    // The visit of the shop itself is shown, and its token is out of the address.
    expect(await read('verdict')).toContain(requestId);
    expect(page.url()).not.toContain('#');
    expect(await read('status')).toMatch(/^This is the visit that the link brought here/);
    expect(requestLines().filter((line) => line.includes('POST /_fp/i/v1'))).toHaveLength(1);
    const consents = page.getByTestId('consents');
    await consents.locator('li').waitFor();
    expect(await consents.textContent()).toMatch(
      /Device identification You agreed on \d+ \w+ \d{4}\. This ends on/,
    );
    // The banner's choice is the consent that the look-up rests on.
    await press('look');
    await page.getByTestId('forget').waitFor();
    await press('withdraw');
    await expect.poll(() => consents.textContent()).toMatch(/You withdrew your consent on \d+ \w+ \d{4}/);
    expect(requestLines()).toContain('POST /v1/consent/withdraw');
    expect(await page.getByTestId('receipts').isVisible()).toBe(true);
    expect(await read('status')).toMatch(/^Withdrawn\. No further visit is checked/);
    expect(thrown).toEqual([]);
  });

  it('shows the entry of the ledger that says so', async () => {
    await open();
    await pressAndWait('consent-accept');
    await expect
      .poll(() => page.locator('[data-field="choice"]').textContent())
      .toMatch(/^You accepted on .* Your choice is recorded \(no\. \d+\)\./);
    expect(requestLines()).toContain('POST /v1/consent/grant');
  });

  it('refuses in the browser after a rejection', async () => {
    await open();
    await pressAndWait('consent-reject');
    expect(await result()).toEqual(['consent-missing', 'not sent']);
    expect(identifyLines()).toEqual([]);
    expect(await page.locator('[data-field="status"]').textContent()).toBe(
      'Nothing was read or sent, because you did not agree.',
    );
    // Nobody refused what nobody was asked.
    expect(await page.locator('[data-part="result"]').textContent()).not.toContain('The server refused');
  });

  it('sells without consent, and its first screen has the promise, the wares and their prices', async () => {
    await open({ viewport: { width: 390, height: 844 } });
    for (const shown of ['Lamps for people, without a puzzle', '€89', '€64', '€49'])
      expect(await page.getByText(shown).first().isVisible()).toBe(true);
    await pressAndWait('consent-reject');
    await page.getByTestId('buy-faro').click();
    await page.getByTestId('buy-kiel').click();
    expect(await read('basket')).toMatch(/^Basket: 2 · €113 Kiel is in your basket\. You were not checked/);
    expect(identifyLines()).toEqual([]);
  });

  it.each(PEOPLE_LANGUAGES)(
    'speaks %s, and the answer stands above the steps on a phone',
    async (language) => {
      await open({ viewport: { width: 390, height: 844 }, locale: language });
      expect(await page.locator('html').getAttribute('lang')).toBe(language);
      const { promise, tour } = SHOP_WORDS[language].page;
      await page.getByRole('heading', { name: promise }).waitFor();
      await answeredBy(press('consent-accept'));
      const answer = page.getByTestId('answer').locator('[data-gpd-held]');
      await answer.getByText(VERDICT_WORDS[language].rules.A1).first().waitFor({ state: 'attached' });
      const topOf = async (locator: Locator) => (await locator.boundingBox())?.y ?? 0;
      expect(await topOf(answer)).toBeLessThan(await topOf(page.getByRole('heading', { name: tour })));
      const name = page.getByText('Aurora', { exact: true });
      const linesOf = (element: Element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        return range.getClientRects().length;
      };
      expect(await name.evaluate(linesOf)).toBe(1);
      await page.locator('.step:last-child').getByText('/v1/embed.js').waitFor();
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
      const shown = await page.locator('main').innerText();
      expect(shown).not.toMatch(/\{\w+\}|undefined/);
      expect(thrown).toEqual([]);
    },
  );

  it('is readable without JavaScript and says what needs it', async () => {
    await open({ javaScriptEnabled: false });
    const text = await page.locator('main').textContent();
    expect(text).toContain('Without it nothing is collected');
    expect(await page.getByRole('button').count()).toBe(0);
    expect(await page.getByRole('listitem').count()).toBeGreaterThan(2);
  });

  describe.each([
    ['320 px', { viewport: { width: 320, height: 640 } }],
    ['1440 px', { viewport: { width: 1440, height: 900 } }],
    ['the dark', { colorScheme: 'dark', viewport: { width: 800, height: 600 } }],
  ] as const)('in %s', (_what, options) => {
    it('scrolls in one direction only', async () => {
      await open(options);
      await pressAndWait('consent-accept');
      await page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true");
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    });
  });

  it('offers a passkey on a shared device, and shows the id that is its own', async () => {
    await open();
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    const kind = {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
    } as const;
    const options = { ...kind, isUserVerified: true, automaticPresenceSimulation: true };
    await cdp.send('WebAuthn.addVirtualAuthenticator', { options });
    await answeredBy(pressAndWait('consent-accept'));
    const before = ingestResponseSchema.parse(await json());
    expect(before.needsAttestation).toBe(true);
    expect(await page.getByTestId('attested').isVisible()).toBe(false);
    await answeredBy(page.getByRole('button', { name: 'Use a passkey' }).click());
    // It is among the folded details of the answer to the person.
    await page.getByTestId('attested').waitFor({ state: 'attached' });
    const after = ingestResponseSchema.parse(await json());
    expect(after).toMatchObject({
      needsAttestation: false,
      attested: { by: 'passkey' },
      class: before.class,
    });
    expect(after.visitorId).not.toBe(before.visitorId);
    expect(await page.evaluate('window.violations')).toEqual([]);
  });

  const verdict = (name: string) =>
    page.locator(`[data-part="verdict"][data-class="${name}"]`).waitFor({ state: 'visible' });
  const done = (step: string) => page.locator(`[data-step="${step}"][data-done]`).waitFor();

  /** The link of the step opens the console, signed in, at the case. */
  async function openCase(hook: string, name: string): Promise<Page> {
    const [desk] = await Promise.all([page.context().waitForEvent('page'), page.getByTestId(hook).click()]);
    await desk.getByRole('link', { name }).waitFor();
    await desk.getByRole('heading', { name: 'I let a script do my shopping' }).waitFor();
    return desk;
  }

  it('the tour: choose, be a bot, ask, rule, heal, verify, withdraw', async () => {
    await open({}, new URL('/', demo.shop).href);
    await page.getByTestId('consent-accept').waitFor();
    await page.getByTestId('consent-accept').click();
    await done('choose');
    await done('verdict');

    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByTestId('bot').click();
    await done('bot');
    await verdict('undeclared_automation');
    await page.locator('[data-part="rules"] li', { hasText: 'A1 ·' }).waitFor();
    await page.getByTestId('heal').click();
    await page.getByText('It still counts as a bot').waitFor();

    await page.getByTestId('buy-aurora').click();
    expect(await read('basket')).toMatch(/^Basket: 0 · €0 Aurora was not put into the basket/);
    await page.getByTestId('contest').locator('summary').click();
    // A refusal stands at the button in the words of the server, and what was typed stays.
    const statement = page.locator('textarea[name="statement"]');
    await statement.evaluate((area) => area.removeAttribute('required'));
    await page.getByTestId('file').click();
    expect(await read('refused')).not.toBe('');
    await statement.fill('I let a script do my shopping. I am a person.');
    await page.getByTestId('file').click();
    await done('contest');
    expect(await page.getByTestId('refused').count()).toBe(0);
    expect(await read('case-key')).toMatch(/^[\w-]{26,31}$/);

    const rosa = await openCase('as-rosa', 'Rosa Reviewer');
    await rosa.getByRole('button', { name: 'Claim' }).click();
    await rosa.getByLabel('Overturn it.').check();
    await rosa
      .getByLabel('Your reason, for the person')
      .fill('You told us that you drive the browser yourself.');
    await rosa.getByRole('button', { name: 'Propose' }).click();
    await rosa.getByText('Another reviewer').first().waitFor();
    await page.getByTestId('heal').click();
    await page.getByText('It still counts as a bot').waitFor();

    const remy = await openCase('as-remy', 'Remy Reviewer');
    await remy
      .getByLabel('Your reason, for the person')
      .fill('I read the statement too, and I agree with it.');
    await remy.getByRole('button', { name: /Confirm/ }).click();
    await remy.getByText('The case is resolved; the person can read the outcome').waitFor();
    await remy.goto(new URL('/console/overview', demo.shop).href);

    await page.getByTestId('heal').click();
    await done('heal');
    await verdict('human');
    await page.getByTestId('buy-aurora').click();
    expect(await read('basket')).toBe('Basket: 1 · €89 Aurora is in your basket.');

    await page.getByTestId('verify').click();
    await done('verify');
    expect(await page.getByTestId('verified').textContent()).toContain('The log is whole');

    await page.getByTestId('check-again').click();
    await page.getByTestId('consent-withdraw').click();
    await done('withdraw');
    await page.getByText('Nothing was sent: you have withdrawn your consent.').waitFor();
    await page.getByTestId('ask-anyway').click();
    await page.getByTestId('result-status').getByText('HTTP 451').waitFor();
    expect(thrown).toEqual([]);
  });
});
