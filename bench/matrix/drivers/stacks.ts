import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { profileOf, QUIET } from '../browsers/chromium.ts';
import { start } from '../lib/process.ts';
import { program } from '../lib/programs.ts';
import type { Visit } from '../lib/types.ts';

/**
 * Stacks that are no dependency of gpd. Each is installed by hand into a folder of its name below MATRIX_STACKS, and its
 * script is a program of its own: it opens the page, waits for the button and presses it.
 */

interface Stack {
  readonly script: string;
  /** What has to be there, below the folder. */
  readonly file: string;
  readonly install: string;
}

const npm = (name: string, version: string): Pick<Stack, 'file' | 'install'> => ({
  file: `node_modules/${name}/package.json`,
  install: `npm install --ignore-scripts --prefix FOLDER ${name}@${version}`,
});

/** The folder is a virtual environment of Python. */
const pypi = (name: string, version: string): Pick<Stack, 'file' | 'install'> => ({
  file: 'bin/python',
  install: `python3 -m venv FOLDER && FOLDER/bin/pip install setuptools ${name}==${version}`,
});

/** The script is built with the module that is fetched into the folder. */
const goModule = (script: string, path: string): Pick<Stack, 'file' | 'install'> => ({
  file: 'run',
  install: `cp bench/matrix/drivers/stacks/${script} FOLDER && cd FOLDER && go mod init matrix && go get ${path} && go build -o run .`,
});

const STACKS = {
  'playwright-mcp': { script: 'playwright-mcp.mjs', ...npm('@playwright/mcp', '0.0.83') },
  stagehand: { script: 'stagehand.mjs', ...npm('@browserbasehq/stagehand', '4.4.0') },
  patchright: { script: 'patchright.mjs', ...npm('patchright', '1.63.0') },
  nodriver: { script: 'nodriver_run.py', ...pypi('nodriver', '0.50.99') },
  zendriver: { script: 'zendriver_run.py', ...pypi('zendriver', '0.17.1') },
  drissionpage: { script: 'drissionpage_run.py', ...pypi('DrissionPage', '4.1.1.4') },
  'selenium-driverless': {
    script: 'selenium_driverless_run.py',
    ...pypi('selenium-driverless', '1.9.4'),
  },
  'undetected-chromedriver': {
    script: 'undetected_run.py',
    ...pypi('undetected-chromedriver', '3.5.5'),
  },
  seleniumbase: { script: 'seleniumbase_run.py', ...pypi('seleniumbase', '4.56.2') },
  helium: { script: 'helium_run.py', ...pypi('helium', '7.0.4') },
  botasaurus: { script: 'botasaurus_run.py', ...pypi('botasaurus-driver', '4.0.101') },
  'rebrowser-puppeteer': {
    script: 'rebrowser-puppeteer.mjs',
    ...npm('rebrowser-puppeteer-core', '24.8.1'),
  },
  'rebrowser-playwright': {
    script: 'rebrowser-playwright.mjs',
    ...npm('rebrowser-playwright-core', '1.52.0'),
  },
  'ghost-cursor': { script: 'ghost-cursor.mjs', ...npm('ghost-cursor', '1.4.2 puppeteer-core@24.43.1') },
  'real-browser': { script: 'real-browser.mjs', ...npm('puppeteer-real-browser', '1.4.4') },
  taiko: { script: 'taiko.mjs', ...npm('taiko', '1.5.0') },
  webdriverio: { script: 'webdriverio.mjs', ...npm('webdriverio', '9.33.1') },
  'chrome-remote-interface': {
    script: 'chrome-remote-interface.mjs',
    ...npm('chrome-remote-interface', '0.34.0'),
  },
  rod: { script: 'rod.go', ...goModule('rod.go', 'github.com/go-rod/rod@v0.116.2') },
  chromedp: { script: 'chromedp.go', ...goModule('chromedp.go', 'github.com/chromedp/chromedp@v0.14.1') },
  pydoll: { script: 'pydoll_run.py', ...pypi('pydoll-python', '3.0.0') },
} as const satisfies Readonly<Record<string, Stack>>;

export type StackName = keyof typeof STACKS;

const folderOf = (name: StackName): string => join(process.env['MATRIX_STACKS'] ?? 'MATRIX_STACKS', name);

/** Null when it is there. */
export function missingStack(name: StackName): string | null {
  const { file, install } = STACKS[name];
  if (existsSync(join(folderOf(name), file))) return null;
  return `${name} is not installed: set MATRIX_STACKS to a folder, and run ${install.replaceAll('FOLDER', `$MATRIX_STACKS/${name}`)}`;
}

/** Some stacks start the browser as a process group of its own. The profile is this visit's alone. */
function endThoseOf(profile: string): void {
  for (const id of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      if (readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(profile)) process.kill(Number(id), 'SIGKILL');
    } catch {
      // ended meanwhile
    }
  }
}

/** @param mode how it presses, or `headless` */
export function openByStack(visit: Visit, name: StackName, mode: string): Promise<void> {
  const { script } = STACKS[name];
  visit.defer(() => endThoseOf(profileOf(visit)));
  const folder = folderOf(name);
  const command = script.endsWith('.mjs') ? process.execPath : join(folder, STACKS[name].file);
  const file = fileURLToPath(new URL(`stacks/${script}`, import.meta.url));
  // Node 20 has the client of Stagehand's choice only by a flag.
  start(visit, command, [...(command === process.execPath ? ['--experimental-websocket'] : []), file], {
    STACK_URL: visit.pressUrl,
    STACK_CHROMIUM: program('chromium'),
    STACK_PROFILE: profileOf(visit),
    STACK_FLAGS: JSON.stringify(QUIET),
    STACK_FOLDER: folder,
    STACK_MODE: mode,
  });
  return Promise.resolve();
}
