import axeCore from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeInChromium } from '../../browser/support/chromium.ts';
import { type BrowserConsole, startBrowserConsole } from '../support/browser.ts';
import type { Console } from '../support/console.ts';

/** Runs axe on every page of the console, in light and dark and at several widths. */

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/** @returns the violations that axe finds, one line per element */
async function axe(page: Page): Promise<string[]> {
  // The script is injected by the protocol, because the policy of the page allows no foreign script.
  await page.evaluate(axeCore.source);
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })`,
  )) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}

describeInChromium('the looks of the console', () => {
  let at: BrowserConsole;
  let site: Console;
  let browser: Browser;
  let enter: BrowserConsole['enter'];
  let createCase: BrowserConsole['createCase'];

  beforeAll(async () => {
    at = await startBrowserConsole();
    ({ site, browser, enter, createCase } = at);
  });
  afterAll(() => at.stop());

  it('axe finds what is wrong', async () => {
    const page = await (await browser.newContext()).newPage();
    await page.setContent('<main><img src="x.png"><input></main>');
    expect((await axe(page)).map((line) => line.split(':')[0])).toEqual(
      expect.arrayContaining(['image-alt', 'label']),
    );
  });

  describe('every page, in light, dark and at 320 pixels', () => {
    const looks: readonly (readonly [string, BrowserContextOptions])[] = [
      ['light', { colorScheme: 'light', viewport: { width: 1440, height: 900 } }],
      ['dark', { colorScheme: 'dark', viewport: { width: 1024, height: 768 } }],
      ['narrow', { colorScheme: 'light', viewport: { width: 320, height: 640 } }],
    ];
    const paths = [
      'queue',
      'queue?state=resolved',
      'queue?class=unknown',
      'overview',
      'subjects',
      'receipts',
      'holds',
      'audit',
      'audit?to=2001-01-01',
      'ledger?seq=0',
      'keys',
      'terms',
      'terms?lang=ar',
      'banner',
      'sessions',
      'help',
      'nothing',
    ];

    it.each(looks)(
      '%s: axe finds nothing, and nothing is wider than the window',
      async (_name, options) => {
        const open = await createCase();
        const page = await enter('dora', options);
        const look = async (view: string): Promise<void> => {
          // A new page has no style until it is loaded.
          await page.waitForLoadState('load');
          expect({ view, found: await axe(page) }).toEqual({ view, found: [] });
          const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
          expect({ view, wider: Math.max(0, wider) }).toEqual({ view, wider: 0 });
        };
        for (const path of [...paths, `contests/${open.contestId}`]) {
          await page.goto(`${site.url}/console/${path}`);
          await look(path);
        }
        await page
          .locator('[data-claim]')
          .click()
          .catch(() => {});
        await page.goto(`${site.url}/console/subjects`);
        await page.getByLabel('By', { exact: true }).selectOption('request');
        await page.getByLabel('Id', { exact: true }).fill(open.requestId);
        await page.getByRole('button', { name: 'Find' }).click();
        await look('a subject');
        await page.getByText('Place a hold').first().click();
        await look('a subject with the form of a hold');
        await page.getByRole('button', { name: 'Plan an erasure' }).click();
        await look('a plan');
        await page
          .getByLabel('To confirm, type the handle')
          .fill((await page.locator('h1 code').textContent()) ?? '');
        await page.getByRole('button', { name: 'Erase it now' }).click();
        await look('a receipt');
        await page.goto(`${site.url}/console/ledger`);
        await page.getByRole('button', { name: 'Verify now' }).click();
        await page.getByText('The ledger is whole').waitFor({ timeout: 10_000 });
        await look('a verified ledger');
        await page.getByRole('button', { name: 'Sign out' }).click();
        await look('signed out');
        await page.goto(`${site.url}/console/callback?code=x&state=y`);
        await look('a sign-in that failed');
      },
      120_000,
    );
  });
});
