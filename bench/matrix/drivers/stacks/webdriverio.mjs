// WebdriverIO with the installed driver.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const {
  STACK_FOLDER = '',
  STACK_URL = '',
  STACK_CHROMIUM = '',
  STACK_PROFILE = '',
  STACK_FLAGS = '[]',
  STACK_MODE,
} = process.env;
const main = join(STACK_FOLDER, 'node_modules/webdriverio/build/node.js');
const { remote } = await import(pathToFileURL(main).href);
const args = [...JSON.parse(STACK_FLAGS), `--user-data-dir=${STACK_PROFILE}`];
const browser = await remote({
  logLevel: 'error',
  capabilities: {
    browserName: 'chrome',
    'goog:chromeOptions': {
      binary: STACK_CHROMIUM,
      args: [...args, ...(STACK_MODE === 'headless' ? ['--headless=new'] : [])],
    },
    'wdio:chromedriverOptions': { binary: '/usr/bin/chromedriver' },
  },
});
await browser.url(STACK_URL);
const button = await browser.$('#press');
await button.waitForExist({ timeout: 25_000 });
await button.click();
