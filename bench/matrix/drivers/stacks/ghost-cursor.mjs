// Puppeteer with ghost-cursor, which moves as a hand does.
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
const load = createRequire(join(STACK_FOLDER, 'package.json'));
const { default: puppeteer } = await import(load.resolve('puppeteer-core'));
const { createCursor } = load('ghost-cursor');
const browser = await puppeteer.launch({
  executablePath: STACK_CHROMIUM,
  userDataDir: STACK_PROFILE,
  headless: STACK_MODE === 'headless',
  defaultViewport: null,
  ignoreDefaultArgs: ['--enable-automation'],
  args: [...JSON.parse(STACK_FLAGS), '--disable-blink-features=AutomationControlled'],
});
const [page] = await browser.pages();
const cursor = createCursor(page);
await page.goto(STACK_URL);
await page.waitForSelector('#press');
await cursor.click('#press');
