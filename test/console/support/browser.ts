import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { launchShell } from '../../browser/support/chromium.ts';
import { started } from '../../support/started.ts';
import { type Console, startConsole } from './console.ts';

/** Starts a console and a Chromium in which staff sign in. */

export interface BrowserConsole {
  readonly site: Console;
  readonly browser: Browser;
  /** Signs in at the page of the identity provider. */
  readonly enter: (account: string, options?: BrowserContextOptions) => Promise<Page>;
  readonly createCase: (
    device?: string,
    statement?: string,
  ) => Promise<{ requestId: string; visitorId: string; class: string; contestId: string }>;
  stop(): Promise<void>;
}

export async function startBrowserConsole(): Promise<BrowserConsole> {
  const [site, browser] = await Promise.all([startConsole(), launchShell()]);
  return {
    site,
    browser,
    async enter(account, options = {}) {
      const context = await browser.newContext(options);
      const page = await context.newPage();
      await page.goto(`${site.url}/console`);
      await page.fill('input[name="login"]', account);
      await page.fill('input[name="password"]', 'x');
      await page.click('button[type="submit"]');
      await page.waitForLoadState();
      if (page.url().startsWith(site.idp.issuer)) await page.click('button[type="submit"]');
      await page.waitForURL(/\/console\/queue/);
      return page;
    },
    async createCase(device, statement = 'I am a person, and I type with a switch.') {
      const decided = await site.decide(device);
      const contestId = await site.contest(decided.requestId, decided.visitorId, statement);
      return { ...decided, contestId };
    },
    async stop() {
      await browser.close();
      await site.stop();
    },
  };
}

/** Starts one console and browser for all tests of a file. */
export function useBrowserConsole(): Pick<BrowserConsole, 'site' | 'enter' | 'createCase'> {
  const at = started(() => startBrowserConsole());
  return {
    get site() {
      return at.site;
    },
    enter: (...who) => at.enter(...who),
    createCase: (...options) => at.createCase(...options),
  };
}
