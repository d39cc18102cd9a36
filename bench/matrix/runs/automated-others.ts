import { existsSync } from 'node:fs';
import { firefox, webkit } from 'playwright-core';
import { openFirefox } from '../browsers/firefox.ts';
import { openFalkon, openQutebrowser } from '../browsers/webkit.ts';
import { openByMarionette } from '../drivers/marionette.ts';
import { openByOwnPlaywright } from '../drivers/playwright.ts';
import { openFirefoxByBidi } from '../drivers/puppeteer.ts';
import { openByWebKitDriver } from '../drivers/webdriver.ts';
import type { ProgramName } from '../lib/programs.ts';
import type { Run } from '../lib/types.ts';

/** Firefox, WebKitGTK and QtWebEngine driven by a program. */

function automated(
  browser: string,
  driver: string,
  setup: string,
  programs: readonly ProgramName[],
  open: Run['open'],
): Run {
  return { browser, driver, setup, truth: 'automation', programs, open };
}

const RFP = { 'privacy.resistFingerprinting': true } as const;

/** The browsers that Playwright patches itself come from its own host and no package registry. */
function ownBuild(browser: string, build: typeof firefox): Run {
  const missing = (): string | null =>
    existsSync(build.executablePath())
      ? null
      : `Playwright's own build is not installed (npx playwright-core install ${build.name()})`;
  const run = automated(browser, 'Playwright', 'its own build, headless', [], (visit) =>
    openByOwnPlaywright(visit, build),
  );
  return { ...run, missing };
}

export const AUTOMATED_OTHERS: readonly Run[] = [
  automated('Firefox', 'command line', 'headless', ['firefox'], (visit) =>
    openFirefox(visit, { flags: ['--headless'] }),
  ),
  automated('Firefox', 'Marionette', 'headful', ['firefox', 'xvfb'], (visit) => openByMarionette(visit)),
  automated('Firefox', 'Marionette', 'headless', ['firefox'], (visit) =>
    openByMarionette(visit, { flags: ['--headless'] }),
  ),
  automated('Firefox', 'Marionette', 'headful, resistFingerprinting', ['firefox', 'xvfb'], (visit) =>
    openByMarionette(visit, { preferences: RFP }),
  ),
  automated('Firefox', 'Marionette', 'headful, webdriver preference off', ['firefox', 'xvfb'], (visit) =>
    openByMarionette(visit, { preferences: { 'dom.webdriver.enabled': false } }),
  ),
  automated('Firefox', 'WebDriver BiDi', 'headful', ['firefox', 'xvfb'], (visit) =>
    openFirefoxByBidi(visit, false),
  ),
  automated('Firefox', 'WebDriver BiDi', 'headless', ['firefox'], (visit) => openFirefoxByBidi(visit, true)),
  ownBuild('Firefox', firefox),
  automated('WebKitGTK', 'WebKitWebDriver', 'MiniBrowser', ['minibrowser', 'webkitdriver', 'xvfb'], (visit) =>
    openByWebKitDriver(visit, 'minibrowser', ['--automation']),
  ),
  automated(
    'WebKitGTK',
    'WebKitWebDriver',
    'Epiphany',
    ['epiphany', 'webkitdriver', 'dbus', 'xvfb'],
    (visit) => openByWebKitDriver(visit, 'epiphany', ['--automation-mode']),
  ),
  ownBuild('WebKit', webkit),
  automated('QtWebEngine', 'command line', 'Falkon without a screen', ['falkon'], (visit) =>
    openFalkon(visit, { QT_QPA_PLATFORM: 'offscreen' }),
  ),
  automated('QtWebEngine', 'command line', 'qutebrowser without a screen', ['qutebrowser'], (visit) =>
    openQutebrowser(visit, { environment: { QT_QPA_PLATFORM: 'offscreen' } }),
  ),
];
