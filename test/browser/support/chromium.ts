import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterEach } from 'vitest';
import { started } from '../../support/started.ts';
import { describeWithTool } from '../../support/tools.ts';

const PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome-stable',
  '/usr/bin/google-chrome',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** The browser under test: `CHROMIUM`, or the first of the usual places; null when there is none. */
export function findChromium(): string | null {
  const named = process.env['CHROMIUM'];
  return (named ? [named] : PATHS).find((path) => existsSync(path)) ?? null;
}

const SHELL = '/usr/bin/chromium-headless-shell';

/** Its engine without the browser around it, where that is installed: a page takes half of the processor's time in it. */
export const findShell = (): string | null =>
  !process.env['CHROMIUM'] && existsSync(SHELL) ? SHELL : findChromium();

async function start(executablePath: string | null, args: readonly string[]): Promise<Browser> {
  if (executablePath === null) throw new Error('Chromium is not installed');
  return chromium.launch({ executablePath, headless: true, args: [...CHROMIUM_ARGS, ...args] });
}

/** A headless Chromium with a profile of its own, for what is said of a browser; the caller closes it. */
export const launchChromium = (): Promise<Browser> => start(findChromium(), []);

/** @returns the headless shell, which is enough to inspect a page */
export const launchShell = (args: readonly string[] = []): Promise<Browser> => start(findShell(), args);

/** The headless shell for a suite; each tab that it opens is somebody new, and is closed after the test. */
export function useTabs(...args: Parameters<typeof launchShell>) {
  const browser = started(() => launchShell(...args));
  let page: Page | undefined;
  /** The errors that the page of this test threw; `faults` has those in its console too. */
  const thrown: string[] = [];
  const faults: string[] = [];
  const requests: { readonly method: string; readonly url: string }[] = [];
  afterEach(() => page?.context().close());
  async function openTab(url: string, options: BrowserContextOptions = {}, script?: string): Promise<Page> {
    page = await (await browser.newContext(options)).newPage();
    for (const list of [thrown, faults, requests]) list.length = 0;
    page.on('pageerror', (error) => {
      thrown.push(error.message);
      faults.push(error.message);
    });
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().includes('404')) faults.push(message.text());
    });
    page.on('request', (request) => requests.push({ method: request.method(), url: request.url() }));
    if (script !== undefined) await page.addInitScript(script);
    await page.goto(url);
    return page;
  }
  return { openTab, thrown, faults, requests };
}

/** A suite that needs Chromium. Without it the suite says so by name, and fails where the tools are required. */
export function describeInChromium(name: string, suite: () => void): void {
  const missing = findChromium() === null ? 'Chromium is not installed (apt-get install chromium)' : null;
  describeWithTool(name, missing, suite);
}
