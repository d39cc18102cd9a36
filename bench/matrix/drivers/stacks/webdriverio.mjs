// WebdriverIO with the installed driver.
import { chromium, flags, headless, importInstalled, profile, url } from './stack.mjs';

const { remote } = await importInstalled('node_modules/webdriverio/build/node.js');
const args = [...flags, `--user-data-dir=${profile}`];
const browser = await remote({
  logLevel: 'error',
  capabilities: {
    browserName: 'chrome',
    'goog:chromeOptions': {
      binary: chromium,
      args: [...args, ...(headless ? ['--headless=new'] : [])],
    },
    'wdio:chromedriverOptions': { binary: '/usr/bin/chromedriver' },
  },
});
await browser.url(url);
const button = await browser.$('#press');
await button.waitForExist({ timeout: 25_000 });
await button.click();
