import { join } from 'node:path';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { axe } from '../../browser/support/axe.ts';
import { describeInChromium } from '../../browser/support/chromium.ts';
import { KID } from '../../support/constants.ts';
import { desktopChrome } from '../../support/samples.ts';
import { started } from '../../support/started.ts';
import { startBrowserConsole } from '../support/browser.ts';
import type { Console } from '../support/console.ts';
import { change } from '../support/data.ts';

/**
 * Looks at every page of the console in light and dark and at several widths: axe, overflow, and the colours of
 * the four classes. SHOTS=DIR saves a picture of each, for a review and for docs/images.
 */

const SHOTS = process.env['SHOTS'];
const LOOKS: readonly (readonly [string, BrowserContextOptions])[] = [
  ['light', { colorScheme: 'light', viewport: { width: 1440, height: 900 } }],
  ['dark', { colorScheme: 'dark', viewport: { width: 1024, height: 768 } }],
  ['narrow', { colorScheme: 'light', viewport: { width: 320, height: 640 } }],
];
const PAGES = [
  ...['queue', 'queue?state=resolved', 'queue?class=unknown', 'overview', 'subjects', 'receipts', 'holds'],
  ...[
    'audit',
    'audit?to=2001-01-01',
    'decisions',
    'decisions?rule=A1',
    'ledger?seq=0',
    'keys',
    'terms',
    'terms?lang=ar',
    'banner',
    'register',
    'sessions',
  ],
  ...['help', 'nothing'],
];
const CLASSES = ['human', 'declared_agent', 'undeclared_automation', 'unknown'];

/**
 * Runs in the page: lists elements of a class whose colour
 * differs from tokens.css or is inherited from the text.
 */
const OFF_COLOUR = `(() => {
  const probe = document.createElement('span');
  document.body.append(probe);
  const off = [];
  for (const one of document.querySelectorAll('.mark[data-class], .chip[data-class], .chart rect[data-class]')) {
    const name = one.closest('[data-class]').dataset.class;
    probe.style.setProperty('color', 'var(--class-' + name.replaceAll('_', '-') + ')');
    const wanted = getComputedStyle(probe).color;
    const style = getComputedStyle(one);
    const got = one instanceof SVGElement ? (style.fill === 'none' ? style.stroke : style.fill) : style.color;
    if (got !== wanted) off.push(name + ': ' + got + ' in place of ' + wanted);
  }
  probe.remove();
  return { off, names: [...new Set([...document.querySelectorAll('.mark[data-class]')].map((one) => one.dataset.class))] };
})()`;

/** Fills the queue and the charts of the overview. */
async function stock(site: Console): Promise<void> {
  for (const device of ['phone-1', 'phone-2', 'laptop-1', 'laptop-2']) {
    const signals = device.startsWith('laptop') ? desktopChrome(device) : undefined;
    const { requestId, visitorId } = await site.decide(device, signals);
    await site.contest(requestId, visitorId, 'A screen reader reads your shop to me.');
  }
  const now = Math.floor(Date.now() / HOUR) * HOUR;
  const tallies = (kind: string, names: readonly string[], from: number, step: number) =>
    Array.from({ length: 14 }, (_, i) =>
      names.map((name, k) => ({ kid: KID, kind, hour: from - i * step, name, n: 20 + 40 * ((i + k) % 5) })),
    ).flat();
  const choices = ['granted', 'withdrawn', 'denied', 'gpc-opt-out'];
  await change(site, async (tx) => {
    await tx('tallies').where({ kid: KID }).delete();
    await tx('tallies').insert(tallies('verdict', CLASSES, now, HOUR));
    await tx('tallies').insert(tallies('consent', choices, Math.floor(now / DAY) * DAY, DAY));
    await tx('rule_reviews').insert([
      { kid: KID, rule: 'A1', upheld: 41, overturned: 3, confirmed: 212, mistaken: 4 },
      { kid: KID, rule: 'T9', upheld: 6, overturned: 9, confirmed: 0, mistaken: 21 },
    ]);
    const [first, second] = (await tx('contests').orderBy('contest_id').pluck('contest_id')) as string[];
    const due = (contest_id: string | undefined, due_at: number) =>
      tx('contests').where({ contest_id }).update({ due_at });
    await due(first, Date.now() + 30 * HOUR);
    await due(second, Date.now() - 2 * DAY);
  });
  await site.gpd.json(['keys', 'rotate', KID]);
}

describeInChromium('the looks of the console', () => {
  const at = started(() => startBrowserConsole());
  let site: Console;
  let browser: Browser;
  beforeAll(async () => {
    ({ site, browser } = at);
    await stock(site);
  });

  it('axe finds what is wrong', async () => {
    const page = await (await browser.newContext()).newPage();
    await page.setContent('<main><img src="x.png"><input></main>');
    expect((await axe(page)).map((line) => line.split(':')[0])).toEqual(
      expect.arrayContaining(['image-alt', 'label']),
    );
  });

  it.each(LOOKS)(
    '%s: axe finds nothing, nothing is wider than the window, and every class has its own colour',
    async (look, options) => {
      const open = await at.createCase();
      const page = await at.enter('dora', options);
      const shownClasses = new Set<string>();
      const check = async (view: string): Promise<void> => {
        // A new page has no style until it is loaded.
        await page.waitForLoadState(SHOTS ? 'networkidle' : 'load');
        const { off, names } = (await page.evaluate(OFF_COLOUR)) as { off: string[]; names: string[] };
        for (const name of names) shownClasses.add(name);
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        const violations = await axe(page);
        const found = { view, violations, off, wider: Math.max(0, wider) };
        expect(found).toEqual({ view, violations: [], off: [], wider: 0 });
        const name = view.replace(/\W+/g, '-');
        if (SHOTS)
          await page.screenshot({ path: join(SHOTS, `console-${name}-${look}.png`), fullPage: true });
      };
      for (const path of PAGES) {
        await page.goto(`${site.url}/console/${path}`);
        // Browsers paint a frame of another origin only once it is visible.
        if (path === 'terms') await page.locator('iframe').scrollIntoViewIfNeeded();
        await check(path);
      }
      await page.goto(`${site.url}/console/contests/${open.contestId}`);
      await check('case');
      await page.goto(`${site.url}/console/subjects`);
      await page.getByLabel('By', { exact: true }).selectOption('request');
      await page.getByLabel('Id', { exact: true }).fill(open.requestId);
      await page.getByRole('button', { name: 'Find' }).click();
      await check('subject');
      await page.getByText('Place a hold').first().click();
      await check('subject-hold');
      await page.getByRole('button', { name: 'Plan an erasure' }).click();
      await check('erase');
      const handle = (await page.locator('h1 code').textContent()) ?? '';
      await page.getByLabel('To confirm, type the handle').fill(handle);
      await page.getByRole('button', { name: 'Erase it now' }).click();
      await check('receipt');
      await page.goto(`${site.url}/console/ledger`);
      await page.getByRole('button', { name: 'Verify now' }).click();
      await page.getByText('The ledger is whole').waitFor();
      await check('verified');
      expect([...shownClasses].sort()).toEqual([...CLASSES].sort());
      await page.getByRole('button', { name: 'Sign out' }).click();
      await check('signed-out');
      await page.goto(`${site.url}/console/callback?code=x&state=y`);
      await check('failed');
      await page.context().close();
    },
    120_000,
  );
});
