import { type ChromiumOptions, desktopChrome, openChromium } from '../browsers/chromium.ts';
import { openFirefox } from '../browsers/firefox.ts';
import { type CdpOptions, openByCdp } from '../drivers/cdp.ts';
import { openByMarionette } from '../drivers/marionette.ts';
import { openByPlaywright, openPlaywrightOverCdp, type PlaywrightOptions } from '../drivers/playwright.ts';
import { openByPuppeteer, openFirefoxByBidi, type PuppeteerOptions } from '../drivers/puppeteer.ts';
import { type ChromedriverOptions, openByChromedriver, openByWebKitDriver } from '../drivers/webdriver.ts';
import type { ProgramName } from '../lib/programs.ts';
import type { Run } from '../lib/types.ts';

/** Runs of browsers that a program drives, from those that say so to those in disguise. */

function automated(
  driver: string,
  setup: string,
  programs: readonly ProgramName[],
  headless: boolean,
  open: Run['open'],
): Run {
  const needs: readonly ProgramName[] = headless ? programs : [...programs, 'xvfb'];
  return { browser: 'Chromium', driver, setup, truth: 'automation', programs: needs, open };
}

const NEW_HEADLESS = '--headless=new';
/** With this flag Chromium leaves `navigator.webdriver` false. */
const NO_FLAG = '--disable-blink-features=AutomationControlled';
/** The line that tutorials recommend against detection. */
const PATCH = "Object.defineProperty(navigator, 'webdriver', { get: () => undefined })";
const named = `--user-agent=${desktopChrome()}`;

const isHeadless = (flags: readonly string[] = []): boolean => flags.includes(NEW_HEADLESS);

const commandLine = (setup: string, flags: readonly string[], program: ProgramName = 'chromium'): Run => {
  const options: ChromiumOptions = { flags, program };
  return automated('command line', setup, [program], true, (visit) => openChromium(visit, options));
};

const playwright = (setup: string, options: PlaywrightOptions): Run =>
  automated('Playwright', setup, ['chromium'], options.launch.headless === true, (visit) =>
    openByPlaywright(visit, options),
  );

function puppeteer(setup: string, options: PuppeteerOptions): Run {
  const driver = options.stealth === true ? 'Puppeteer stealth' : 'Puppeteer';
  const program = options.program ?? 'chromium';
  return automated(driver, setup, [program], options.launch.headless !== false, (visit) =>
    openByPuppeteer(visit, options),
  );
}

const chromedriver = (setup: string, options: ChromedriverOptions = {}): Run =>
  automated('chromedriver', setup, ['chromium', 'chromedriver'], isHeadless(options.args), (visit) =>
    openByChromedriver(visit, options),
  );

const cdp = (setup: string, options: CdpOptions): Run =>
  automated('CDP by hand', setup, ['chromium'], isHeadless(options.flags), (visit) =>
    openByCdp(visit, { press: 'input', ...options }),
  );

const overCdp = (setup: string, flags: readonly string[]): Run =>
  automated('Playwright over CDP', setup, ['chromium'], isHeadless(flags), (visit) =>
    openPlaywrightOverCdp(visit, flags),
  );

const HEADLESS = { headless: true } as const;
const HEADFUL = { headless: false } as const;
const HIDDEN = { ignoreDefaultArgs: ['--enable-automation'], args: [NO_FLAG] };
const SWITCHES_HIDDEN = { excludeSwitches: ['enable-automation'], useAutomationExtension: false };
const AS_DESKTOP = { userAgent: desktopChrome() };

const BY_COMMAND_LINE: readonly Run[] = [
  commandLine('headless', [NEW_HEADLESS]),
  commandLine('old headless mode', [], 'headless-shell'),
  commandLine('headless, named as a desktop', [NEW_HEADLESS, named]),
  commandLine('headless, named as a desktop, 1920 by 1080', [NEW_HEADLESS, named, '--window-size=1920,1080']),
  commandLine('old headless mode, named as a desktop', [named], 'headless-shell'),
];

const BY_PLAYWRIGHT: readonly Run[] = [
  playwright('headless', { launch: HEADLESS }),
  playwright('headful', { launch: HEADFUL }),
  playwright('headless, named as a desktop', { launch: HEADLESS, context: AS_DESKTOP }),
  playwright('headless, webdriver patched, named as a desktop', {
    launch: HEADLESS,
    context: AS_DESKTOP,
    script: PATCH,
  }),
  playwright('headless, flag hidden, named as a desktop', {
    launch: { ...HEADLESS, ...HIDDEN },
    context: AS_DESKTOP,
  }),
  playwright('headful, flag hidden', { launch: { ...HEADFUL, ...HIDDEN } }),
  playwright('headful, flag hidden, the window decides the size', {
    launch: { ...HEADFUL, ...HIDDEN },
    context: { viewport: null },
  }),
  playwright('headless, flag hidden, as a Pixel', { launch: { ...HEADLESS, ...HIDDEN }, device: 'Pixel 7' }),
  playwright('headless, flag hidden, as an iPhone', {
    launch: { ...HEADLESS, ...HIDDEN },
    device: 'iPhone 15',
  }),
  playwright('headful, flag hidden, as Windows', {
    launch: { ...HEADFUL, ...HIDDEN },
    context: { userAgent: desktopChrome('Windows NT 10.0; Win64; x64') },
  }),
];

const BY_PUPPETEER: readonly Run[] = [
  puppeteer('headless', { launch: HEADLESS }),
  puppeteer('headful', { launch: HEADFUL }),
  puppeteer('old headless mode', { launch: { headless: 'shell' }, program: 'headless-shell' }),
  puppeteer('headless, named as a desktop', { launch: HEADLESS, ...AS_DESKTOP }),
  puppeteer('headless, flag hidden, named as a desktop', {
    launch: { ...HEADLESS, ...HIDDEN },
    ...AS_DESKTOP,
  }),
  puppeteer('headful, flag hidden', { launch: { ...HEADFUL, ...HIDDEN } }),
  puppeteer('headful, flag hidden, the window decides the size', {
    launch: { ...HEADFUL, ...HIDDEN, defaultViewport: null },
  }),
  puppeteer('headless, flag hidden, as a Pixel', { launch: { ...HEADLESS, ...HIDDEN }, device: 'Pixel 5' }),
  puppeteer('headless, flag hidden, as an iPhone', {
    launch: { ...HEADLESS, ...HIDDEN },
    device: 'iPhone 15',
  }),
  puppeteer('headless', { launch: HEADLESS, stealth: true }),
  puppeteer('headful', { launch: HEADFUL, stealth: true }),
  puppeteer('headful, the window decides the size', {
    launch: { ...HEADFUL, defaultViewport: null },
    stealth: true,
  }),
  puppeteer('old headless mode', {
    launch: { headless: 'shell' },
    program: 'headless-shell',
    stealth: true,
  }),
];

const BY_CHROMEDRIVER: readonly Run[] = [
  chromedriver('headless', { args: [NEW_HEADLESS] }),
  chromedriver('headful'),
  chromedriver('headless, flag hidden', { args: [NEW_HEADLESS, NO_FLAG] }),
  chromedriver('headless, flag hidden, named as a desktop', {
    args: [NEW_HEADLESS, NO_FLAG, named],
    options: SWITCHES_HIDDEN,
  }),
  chromedriver('headful, flag hidden', { args: [NO_FLAG] }),
  chromedriver('headful, flag and switches hidden', { args: [NO_FLAG], options: SWITCHES_HIDDEN }),
  chromedriver('headful, webdriver patched', { options: SWITCHES_HIDDEN, script: PATCH }),
  chromedriver('headful, flag hidden, as a Pixel', {
    args: [NO_FLAG],
    options: { ...SWITCHES_HIDDEN, mobileEmulation: { deviceName: 'Pixel 7' } },
  }),
  chromedriver('headful, flag and names removed', {
    args: [NO_FLAG],
    options: SWITCHES_HIDDEN,
    namesRemoved: true,
  }),
  chromedriver('headless, flag and names removed, named as a desktop', {
    args: [NEW_HEADLESS, NO_FLAG, named],
    options: SWITCHES_HIDDEN,
    namesRemoved: true,
  }),
];

const BY_HAND: readonly Run[] = [
  cdp('headful, Runtime enabled', { enable: ['Runtime'] }),
  cdp('headful, flag hidden, Runtime enabled', { flags: [NO_FLAG], enable: ['Runtime'] }),
  cdp('headful, flag hidden, no domain enabled', { flags: [NO_FLAG] }),
  cdp('headless, flag hidden, Runtime enabled, named as a desktop', {
    flags: [NEW_HEADLESS, NO_FLAG],
    enable: ['Runtime'],
    userAgent: desktopChrome(),
  }),
  cdp('headless, flag hidden, no domain enabled, named as a desktop', {
    flags: [NEW_HEADLESS, NO_FLAG, named],
  }),
  cdp('headful, flag hidden, no domain enabled, a path and force', {
    flags: [NO_FLAG],
    press: 'input with force',
  }),
  cdp('headful, flag hidden, no domain enabled, pressed by a script', { flags: [NO_FLAG], press: 'script' }),
  overCdp('headful', []),
  overCdp('headful, flag hidden', [NO_FLAG]),
  overCdp('headless, flag hidden', [NEW_HEADLESS, NO_FLAG]),
];

const firefox = (driver: string, setup: string, open: Run['open']): Run => ({
  browser: 'Firefox',
  driver,
  setup,
  truth: 'automation',
  programs: setup === 'headless' ? ['firefox'] : ['firefox', 'xvfb'],
  open,
});

const FIREFOX: readonly Run[] = [
  firefox('command line', 'headless', (visit) => openFirefox(visit, { flags: ['--headless'] })),
  firefox('Marionette', 'headful', (visit) => openByMarionette(visit)),
  firefox('Marionette', 'headless', (visit) => openByMarionette(visit, { flags: ['--headless'] })),
  firefox('Marionette', 'headful, resistFingerprinting', (visit) =>
    openByMarionette(visit, { preferences: { 'privacy.resistFingerprinting': true } }),
  ),
  firefox('Marionette', 'headful, webdriver preference off', (visit) =>
    openByMarionette(visit, { preferences: { 'dom.webdriver.enabled': false } }),
  ),
  firefox('WebDriver BiDi', 'headful', (visit) => openFirefoxByBidi(visit, false)),
  firefox('WebDriver BiDi', 'headless', (visit) => openFirefoxByBidi(visit, true)),
];

const WEBKIT: Run = {
  browser: 'WebKitGTK',
  driver: 'WebKitWebDriver',
  setup: 'MiniBrowser',
  truth: 'automation',
  programs: ['minibrowser', 'webkitdriver', 'xvfb'],
  open: openByWebKitDriver,
};

export const DRIVEN: readonly Run[] = [
  ...BY_COMMAND_LINE,
  ...BY_PLAYWRIGHT,
  ...BY_PUPPETEER,
  ...BY_CHROMEDRIVER,
  ...BY_HAND,
  ...FIREFOX,
  WEBKIT,
];
