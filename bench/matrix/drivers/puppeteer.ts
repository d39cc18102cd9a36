import puppeteer, { type Browser, type Device, KnownDevices, type LaunchOptions } from 'puppeteer-core';
import { addExtra } from 'puppeteer-extra';
import stealth from 'puppeteer-extra-plugin-stealth';
import { profileOf, QUIET } from '../browsers/chromium.ts';
import { firefoxProfile } from '../browsers/firefox.ts';
import { type ProgramName, program } from '../lib/programs.ts';
import type { Visit } from '../lib/types.ts';

export interface PuppeteerOptions {
  readonly launch: LaunchOptions;
  /** With puppeteer-extra-plugin-stealth and all its evasions. */
  readonly stealth?: boolean;
  readonly device?: keyof typeof KnownDevices;
  readonly userAgent?: string;
  readonly program?: ProgramName;
}

function launcher(options: PuppeteerOptions): { launch(options: LaunchOptions): Promise<Browser> } {
  if (options.stealth !== true) return puppeteer;
  // The types of puppeteer-extra are for an older Puppeteer; at run time it accepts this one.
  const extra = addExtra(puppeteer as unknown as Parameters<typeof addExtra>[0]);
  extra.use(stealth());
  return extra as unknown as { launch(options: LaunchOptions): Promise<Browser> };
}

async function openPage(visit: Visit, browser: Browser, options: PuppeteerOptions): Promise<void> {
  const page = await browser.newPage();
  const device: Device | undefined = options.device && KnownDevices[options.device];
  if (device) await page.emulate(device);
  if (options.userAgent !== undefined) await page.setUserAgent({ userAgent: options.userAgent });
  await page.goto(visit.pressUrl);
  await visit.ready();
  await page.click('#press');
}

export async function openByPuppeteer(visit: Visit, options: PuppeteerOptions): Promise<void> {
  const { args = [], ...launch } = options.launch;
  const browser = await launcher(options).launch({
    executablePath: program(options.program ?? 'chromium'),
    args: [...QUIET, ...args],
    env: visit.environment as Record<string, string>,
    userDataDir: profileOf(visit),
    ...launch,
  });
  visit.defer(() => browser.close());
  await openPage(visit, browser, options);
}

/** Drives Firefox by WebDriver BiDi, which it supports without another program. */
export async function openFirefoxByBidi(visit: Visit, headless: boolean): Promise<void> {
  const browser = await puppeteer.launch({
    browser: 'firefox',
    executablePath: program('firefox'),
    headless,
    env: visit.environment as Record<string, string>,
    userDataDir: firefoxProfile(visit),
  });
  visit.defer(() => browser.close());
  await openPage(visit, browser, { launch: {} });
}
