import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BrowserContextOptions, chromium, devices, type LaunchOptions } from 'playwright-core';
import { profileOf, QUIET } from '../browsers/chromium.ts';
import { eventually, start } from '../lib/process.ts';
import { program } from '../lib/programs.ts';
import type { Visit } from '../lib/types.ts';

export interface PlaywrightOptions {
  readonly launch: LaunchOptions;
  readonly context?: BrowserContextOptions;
  /** A name of Playwright's own list. */
  readonly device?: string;
  /** Run in every document before its own scripts. */
  readonly script?: string;
}

const environmentOf = (visit: Visit): Record<string, string> => visit.environment as Record<string, string>;

export async function openByPlaywright(visit: Visit, options: PlaywrightOptions): Promise<void> {
  const { args = [], ...launch } = options.launch;
  const browser = await chromium.launch({
    executablePath: program('chromium'),
    args: [...QUIET, ...args],
    env: environmentOf(visit),
    ...launch,
  });
  visit.defer(() => browser.close());
  const device = options.device === undefined ? {} : devices[options.device];
  const context = await browser.newContext({ ...device, ...options.context });
  if (options.script !== undefined) await context.addInitScript(options.script);
  const page = await context.newPage();
  await page.goto(visit.pressUrl);
  await visit.ready();
  await page.locator('#press').click();
}

/** Drives a browser that was started separately, with a port for developer tools. */
export async function openPlaywrightOverCdp(visit: Visit, flags: readonly string[]): Promise<void> {
  const profile = profileOf(visit);
  const args = [...QUIET, `--user-data-dir=${profile}`, '--remote-debugging-port=0', ...flags, 'about:blank'];
  start(visit, program('chromium'), args);
  const port = await eventually(async () => {
    const [first = ''] = (await readFile(join(profile, 'DevToolsActivePort'), 'utf8')).split('\n');
    return first;
  });
  const browser = await chromium.connectOverCDP(`http://127.0.0.1:${port}`);
  visit.defer(() => browser.close());
  const page = browser.contexts()[0]?.pages()[0];
  if (!page) throw new Error('Chromium opened no page');
  await page.goto(visit.pressUrl);
  await page.locator('#press').click();
}
