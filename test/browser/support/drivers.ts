import puppeteer, { type Browser, type BrowserContext, type Page } from 'puppeteer-core';
import { findChromium, findShell } from './chromium.ts';
import { findFirefox } from './firefox.ts';

/** Chromium and Firefox by one driver: what is said of the banner has to hold in both. */

export type BrowserName = 'chromium' | 'firefox';

/** A run makes its journeys in one browser at a time (vitest.config.ts). */
export const BROWSERS = (['chromium', 'firefox'] satisfies BrowserName[]).filter(
  (name) => process.env['BROWSERS']?.includes(name) ?? true,
);

/** First-run pages and background traffic off; nothing that a page could see. */
const QUIET = {
  'browser.aboutwelcome.enabled': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'datareporting.policy.dataSubmissionPolicyBypassNotification': true,
  'app.normandy.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'termsofuse.bypassNotification': true,
} as const;

/** Why a browser is not there; null when it is. */
export function missingBrowser(name: BrowserName): string | null {
  if (name === 'chromium')
    return findChromium() === null ? 'Chromium is not installed (apt-get install chromium)' : null;
  return findFirefox() === null ? 'Firefox is not installed (apt-get install firefox-esr)' : null;
}

/**
 * @param preferences of Firefox, on top of the quiet ones
 * @param program of Chromium: the whole of it for what is said of a browser, and not of a page
 */
export function launch(
  name: BrowserName,
  preferences: Readonly<Record<string, boolean | number | string>> = {},
  program: string | null = findShell(),
): Promise<Browser> {
  if (name === 'chromium') {
    return puppeteer.launch({
      executablePath: program ?? '',
      headless: true,
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'],
    });
  }
  return puppeteer.launch({
    browser: 'firefox',
    executablePath: findFirefox() ?? '',
    headless: true,
    extraPrefsFirefox: { ...QUIET, ...preferences },
  });
}

/** A visitor: storage of their own, any number of tabs. */
export interface Visitor {
  readonly context: BrowserContext;
  /** @param script runs before every page of this tab */
  tab(script?: string): Promise<Page>;
  leave(): Promise<void>;
}

export async function visit(browser: Browser): Promise<Visitor> {
  const context = await browser.createBrowserContext();
  return {
    context,
    async tab(script) {
      const page = await context.newPage();
      if (script !== undefined) await page.evaluateOnNewDocument(script);
      return page;
    },
    leave: () => context.close(),
  };
}
