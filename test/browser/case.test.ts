import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { contestTextsOf } from '../../src/rights/contests/contest.ts';
import { createContestService } from '../../src/rights/contests/service.ts';
import { open as openStore } from '../rights/support/eraser.ts';
import { type Rights, startRights } from '../rights/support/rights.ts';
import { KID, REASON } from '../support/constants.ts';
import { describeInChromium, useTabs } from './support/chromium.ts';

/** A person without an account at the page of their case. */

const RITA = { kid: KID, role: 'reviewer', ref: 'rita' } as const;
const HOSTILE = '<img src=x onerror="document.title=1">';
const STATEMENT = `I am a person. My screen reader drives the browser.\n${HOSTILE}`;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describeInChromium('browser/case', () => {
  let rights: Rights;
  let store: Awaited<ReturnType<typeof openStore>>;
  let reviewers: ReturnType<typeof createContestService>;
  const { openTab, faults, requests } = useTabs();
  let page: Page;

  beforeAll(async () => {
    rights = await startRights({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } });
    store = await openStore(rights.gpd.dataDir);
    const tenantOf = (kid: string) => {
      const tenant = store.tenantOf(kid);
      return tenant && { ...tenant, settings: { ...tenant.settings, 'review.fourEyes': true } };
    };
    const contestTexts = contestTextsOf(tenantOf);
    const { database } = store;
    reviewers = createContestService({
      database,
      tenantOf,
      clock: Date.now,
      random: randomBytes,
      contestTexts,
    });
  });
  afterAll(async () => {
    await store?.database.close();
    await rights?.stop();
  });

  let networks = 0;
  async function file() {
    networks += 1;
    const visit = await rights.visit({ bot: true });
    const body = { statement: STATEMENT };
    const headers = { 'x-forwarded-for': `10.2.${networks}.1` };
    const reply = await rights.me(visit, 'contest', { body, headers });
    return { visit, ...(reply.json() as { readonly caseKey: string; readonly contestId: string }) };
  }

  async function open(path: string, options: BrowserContextOptions = {}): Promise<void> {
    page = await openTab(`${rights.gpd.url}${path}`, options);
  }

  const shown = (text: string) => page.locator('#state', { hasText: text }).waitFor();
  async function violations(): Promise<string[]> {
    await page.evaluate(AXE);
    const found = (await page.evaluate('axe.run()')) as AxeResults;
    expect(found.passes.length).toBeGreaterThan(5);
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
  }
  const expectFits = async (width: number): Promise<void> =>
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);

  it('two reviewers with one reason: the person reads it once', async () => {
    const { caseKey, contestId } = await file();
    const ruling = { contestId, outcome: 'upheld', version: null, reason: REASON } as const;
    await reviewers.resolve(RITA, ruling);
    await reviewers.resolve({ ...RITA, ref: 'remy' }, ruling);
    await open(`/case#${caseKey}`);
    await page.locator('#ruling').waitFor();
    expect(await page.locator('#reasons').textContent()).toBe(REASON);
  });

  it('under the law of the United Kingdom takes a complaint, in the language of the person', async () => {
    const { caseKey } = await file();
    await rights.gpd.json(['tenants', 'set', KID, 'rights.profile=uk']);
    const takesComplaints = async () =>
      ((await rights.call('/case', { caseKey })).json() as { takesComplaints?: boolean }).takesComplaints;
    await expect.poll(takesComplaints).toBe(true);
    await open(`/case?lang=de#${caseKey}`, { viewport: { width: 390, height: 844 } });
    await page.getByText('Sich über den Umgang mit Ihren Daten beschweren').click();
    await page.locator('#complaint').fill(STATEMENT);
    expect(await violations()).toEqual([]);
    await expectFits(390);
    await page.getByRole('button', { name: 'Beschwerde absenden' }).click();
    await page.getByText('Ihre Beschwerde wurde gesendet.').waitFor();
    const key = /\S+$/.exec((await page.locator('#complained').textContent()) ?? '')?.[0] ?? '';
    await open(`/case#${key}`);
    await shown('We will confirm that your complaint has arrived by');
    expect(await page.locator('#case').textContent()).toContain(STATEMENT);
    await rights.gpd.json(['tenants', 'set', KID, 'rights.profile=gdpr']);
    await expect.poll(takesComplaints).not.toBe(true);
  });

  it('tells the case of a link, takes an answer, and tells both reasons', async () => {
    const { caseKey, contestId } = await file();
    const screen = { viewport: { width: 390, height: 844 } };
    await open(`/case#${caseKey}`, screen);
    await shown('We will answer by');
    expect(await page.locator('#case').textContent()).toContain(STATEMENT);
    expect(await page.locator('#rules li').count()).toBeGreaterThan(0);
    expect(await page.locator('#reply').isVisible()).toBe(false);
    expect(await page.locator('#ruling').isVisible()).toBe(false);
    expect(await violations()).toEqual([]);
    await reviewers.ask(RITA, contestId, 'Which screen reader do you use?');
    await page.reload();
    await page.getByLabel('Your answer').fill(`NVDA ${HOSTILE}`);
    expect(await violations()).toEqual([]);
    await expectFits(390);
    await page.getByRole('button', { name: 'Send the answer' }).click();
    await page.getByText('Your answer was sent to the reviewer.').waitFor();
    expect(await page.locator('#reply').isVisible()).toBe(false);
    expect(await page.locator('[data-text="answer"]').textContent()).toBe(`NVDA ${HOSTILE}`);
    const ruling = { contestId, outcome: 'overturned', version: null } as const;
    await reviewers.resolve(RITA, { ...ruling, reason: 'A screen reader explains every sign.' });
    await reviewers.resolve({ ...RITA, ref: 'remy' }, { ...ruling, reason: 'I read it, and I agree.' });
    await page.reload();
    await shown('We were wrong: this visit counts as a person’s.');
    const reasons = await page.locator('#reasons').textContent();
    expect(reasons).toMatch(/first reviewer.*explains every sign.*second reviewer.*I agree/);
    expect(await violations()).toEqual([]);
    await expectFits(390);
    await page.emulateMedia({ media: 'print' });
    expect(await page.locator('#open').isVisible()).toBe(false);
    expect(await page.locator('#state').isVisible()).toBe(true);
    // The key is in no address that a server is asked for, and nothing that the person wrote ran.
    expect(requests.length).toBeGreaterThan(5);
    expect(requests.filter(({ url }) => url.split('#')[0]?.includes(caseKey.slice(0, 5)))).toEqual([]);
    expect(await page.title()).toContain('Your objection');
    expect(faults).toEqual([]);
  });

  it('takes a typed key, and says what is wrong with another', async () => {
    const { caseKey, visit } = await file();
    await open('/case', { colorScheme: 'dark', viewport: { width: 1440, height: 900 } });
    expect(await violations()).toEqual([]);
    await page.getByLabel('Case key').fill(` ${caseKey.toLowerCase().replaceAll('-', ' ')}`);
    await page.keyboard.press('Enter');
    await shown('We will answer by');
    expect(await violations()).toEqual([]);
    expect(page.url()).toBe(`${rights.gpd.url}/case`);
    // The form folds while a case is shown.
    expect(await page.getByLabel('Case key').isVisible()).toBe(false);
    await page.getByText('Open another case').click();
    await page.getByLabel('Case key').fill('7ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-Z');
    await page.keyboard.press('Enter');
    await page.getByText('No case has this key.').waitFor();
    expect(await page.locator('#case').isVisible()).toBe(false);
    const dpo = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
    await rights.call('/privacy/erase', { requestId: visit.requestId }, dpo);
    await page.getByLabel('Case key').fill(caseKey);
    await page.keyboard.press('Enter');
    await page.getByText('the case may also have been erased').waitFor();
    expect(faults).toEqual([]);
  });

  it('remembers an open case until the person says otherwise, or it is gone', async () => {
    const { caseKey, visit } = await file();
    await open(`/case#${caseKey}`);
    const note = page.locator('[data-remember] [data-note]');
    await note.getByText(/remembers the key until \d+ \w+ \d{4}/).waitFor();
    // The person comes back without the key.
    await page.goto(`${rights.gpd.url}/case`);
    await shown('We will answer by');
    expect(await violations()).toEqual([]);
    await page.getByRole('button', { name: 'Forget it here' }).click();
    await note.getByText('Forgotten in this browser').waitFor();
    await page.reload();
    await page.getByLabel('Case key').waitFor();
    expect(await page.locator('#case').isVisible()).toBe(false);

    // The key of an erased case is of no more use, so that the browser forgets it too.
    await page.getByLabel('Case key').fill(caseKey);
    await page.keyboard.press('Enter');
    await note.getByText('remembers the key until').waitFor();
    const dpo = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
    await rights.call('/privacy/erase', { requestId: visit.requestId }, dpo);
    await page.goto(`${rights.gpd.url}/case`);
    await page.getByText('No case has this key').waitFor();
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
    await page.reload();
    await page.getByLabel('Case key').waitFor();
    expect(await page.locator('#told').textContent()).toBe('');
    expect(faults).toEqual([]);
  });

  it('says so without JavaScript', async () => {
    await open('/case', { javaScriptEnabled: false });
    expect(await page.textContent('noscript, main')).toContain('needs JavaScript');
  });
});
