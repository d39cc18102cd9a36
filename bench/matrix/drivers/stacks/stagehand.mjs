// Stagehand without a language model: its own browser and its page's methods.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const {
  STACK_FOLDER = '',
  STACK_URL = '',
  STACK_CHROMIUM = '',
  STACK_PROFILE = '',
  STACK_MODE,
} = process.env;
const main = join(STACK_FOLDER, 'node_modules/@browserbasehq/stagehand/dist/index.mjs');
const { localBrowser, Stagehand } = await import(pathToFileURL(main).href);
const browser = await localBrowser.launch({
  executablePath: STACK_CHROMIUM,
  userDataDir: STACK_PROFILE,
  headless: STACK_MODE === 'headless',
  chromiumSandbox: process.getuid?.() !== 0,
});
await Stagehand.create({ browser });
const [page] = await browser.context.pages();
await page.goto(STACK_URL);
await page.waitForSelector('#press');
await page.locator('#press').click();
