import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { fileOf, PICTURES, type Picture, THEMES } from './pictures.ts';

/** `npm run pictures [NAME…]`: starts the built demo and draws docs/images with Chromium. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const SIZE = { width: 1280, height: 900 };

async function startDemo(): Promise<{ readonly demo: ChildProcess; readonly base: string }> {
  const demo = spawn(process.execPath, [`${root}bin/gpd`, 'demo', '--port', '0', '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface(demo.stdout), 'line')) as [string];
  const { urls } = JSON.parse(line) as { urls: { console: string } };
  return { demo, base: new URL(urls.console).origin };
}

/** Draws a picture in each theme, for a new visitor or a new session of the staff. */
async function draw(browser: Browser, base: string, picture: Picture): Promise<void> {
  const { account, width = SIZE.width, height = SIZE.height } = picture;
  const page = await browser.newPage({
    viewport: { width, height },
    locale: 'en-GB',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
  });
  if (account !== undefined) {
    await page.goto(`${base}/console`);
    await page.locator(`button[value="${account}"]`).click();
    await page.waitForURL(`${base}/console/**`);
  }
  await picture.show(page, base);
  await page.waitForLoadState('networkidle');
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    await page.screenshot({ path: `${root}docs/images/${fileOf(picture, theme)}` });
    process.stdout.write(`${fileOf(picture, theme)}\n`);
  }
  await page.close();
}

const names = process.argv.slice(2);
const { demo, base } = await startDemo();
try {
  const browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  for (const picture of PICTURES)
    if (names.length === 0 || names.includes(picture.name)) await draw(browser, base, picture);
  await browser.close();
} finally {
  demo.kill('SIGTERM');
}
