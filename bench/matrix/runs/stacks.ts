import { type CdpOptions, openByCdp } from '../drivers/cdp.ts';
import { openPlaywrightOverCdp } from '../drivers/playwright.ts';
import { missingStack, openByStack, type StackName } from '../drivers/stacks.ts';
import type { Run } from '../lib/types.ts';

/**
 * Chromium driven by what agents and scrapers of 2026 use, pressed once. The first were out of sample until rules were changed
 * with them; no rule was written while looking at the hold-out.
 */

const NO_FLAG = '--disable-blink-features=AutomationControlled';
const HEADLESS = '--headless=new';

function driven(driver: string, setup: string, open: Run['open'], more: Partial<Run> = {}): Run {
  const headless = setup.startsWith('headless');
  return {
    browser: 'Chromium',
    driver,
    setup,
    truth: 'automation',
    programs: headless ? ['chromium'] : ['chromium', 'xvfb'],
    open,
    ...more,
  };
}

const stack = (driver: string, name: StackName, setup: string, mode = setup): Run =>
  driven(driver, setup, (visit) => openByStack(visit, name, mode), { missing: () => missingStack(name) });

const heldBack = (name: StackName, setup: string, mode = setup): Run => ({
  ...stack(name, name, setup, mode),
  sample: 'out',
});

const overCdp = (setup: string, flags: readonly string[]): Run =>
  driven('Playwright over CDP', setup, (visit) => openPlaywrightOverCdp(visit, flags));

const raw = (setup: string, options: CdpOptions): Run =>
  driven('raw CDP', setup, (visit) => openByCdp(visit, options));

export const STACK_RUNS: readonly Run[] = [
  overCdp('headful', []),
  overCdp('headful, flag hidden', [NO_FLAG]),
  overCdp('headless, flag hidden', [HEADLESS, NO_FLAG]),
  stack('Playwright MCP', 'playwright-mcp', 'headful'),
  stack('Playwright MCP', 'playwright-mcp', 'headless'),
  stack('Stagehand', 'stagehand', 'headful'),
  stack('Stagehand', 'stagehand', 'headless'),
  stack('patchright', 'patchright', 'headful, a profile that stays', 'headful'),
  stack('patchright', 'patchright', 'headless, a profile that stays', 'headless'),
  stack('nodriver', 'nodriver', 'headful, pressed by input', 'by input'),
  stack('nodriver', 'nodriver', 'headful, pressed by a script', 'by script'),
  stack('nodriver', 'nodriver', 'headless'),
  stack('pydoll', 'pydoll', 'headful'),
  stack('pydoll', 'pydoll', 'headful, pressed like a hand', 'like a hand'),
  stack('pydoll', 'pydoll', 'headless'),
  raw('headful, pipe, no domain enabled, input', { flags: [NO_FLAG], press: 'input' }),
  raw('headful, port, Runtime enabled, input', {
    flags: [NO_FLAG],
    enable: ['Runtime'],
    port: true,
    press: 'input',
  }),
  raw('headful, port, no domain enabled, a path and force', {
    flags: [NO_FLAG],
    port: true,
    press: 'input with force',
  }),
  raw('headful, pipe, isolated world, script', { flags: [NO_FLAG], press: 'script' }),
  raw('headless, pipe, no domain enabled, input', { flags: [HEADLESS, NO_FLAG], press: 'input' }),
  heldBack('zendriver', 'headful'),
  heldBack('zendriver', 'headless'),
  heldBack('drissionpage', 'headful'),
  heldBack('drissionpage', 'headless'),
  heldBack('selenium-driverless', 'headful'),
  heldBack('undetected-chromedriver', 'headful'),
  heldBack('undetected-chromedriver', 'headless'),
  heldBack('seleniumbase', 'headful, CDP mode', 'headful'),
  heldBack('helium', 'headful'),
  heldBack('botasaurus', 'headful'),
  heldBack('rebrowser-puppeteer', 'headful'),
  heldBack('rebrowser-playwright', 'headful'),
  heldBack('rebrowser-playwright', 'headless'),
  heldBack('ghost-cursor', 'headful, flag hidden', 'headful'),
  heldBack('real-browser', 'headful'),
  heldBack('real-browser', 'headful, its own click', 'real click'),
  heldBack('taiko', 'headful'),
  heldBack('webdriverio', 'headful'),
  heldBack('chrome-remote-interface', 'headful'),
  heldBack('rod', 'headful'),
  heldBack('rod', 'headless'),
  heldBack('chromedp', 'headful'),
  heldBack('chromedp', 'headless'),
];
