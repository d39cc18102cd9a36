import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { describeInBrowser } from '../../support/tools.ts';

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

/** A headless Chromium with a profile of its own; the caller closes it. */
export async function launchChromium(args: readonly string[] = []): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error('Chromium is not installed');
  return chromium.launch({ executablePath, headless: true, args: [...CHROMIUM_ARGS, ...args] });
}

/** A suite that needs Chromium. Without it the suite says so by name, and fails where the tools are required. */
export function describeInChromium(name: string, suite: () => void): void {
  const missing = findChromium() === null ? 'Chromium is not installed (apt-get install chromium)' : null;
  describeInBrowser(name, missing, suite);
}
