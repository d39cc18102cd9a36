// Puppeteer with the patches of rebrowser, as its page says: in place of puppeteer-core.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const {
  STACK_FOLDER = '',
  STACK_URL = '',
  STACK_CHROMIUM = '',
  STACK_PROFILE = '',
  STACK_FLAGS = '[]',
  STACK_MODE,
} = process.env;
const puppeteer = createRequire(join(STACK_FOLDER, 'package.json'))('rebrowser-puppeteer-core');
const browser = await puppeteer.launch({
  executablePath: STACK_CHROMIUM,
  userDataDir: STACK_PROFILE,
  headless: STACK_MODE === 'headless',
  defaultViewport: null,
  args: JSON.parse(STACK_FLAGS),
});
const [page] = await browser.pages();
await page.goto(STACK_URL);
await page.waitForSelector('#press');
await page.click('#press');
