// Playwright with the patches of rebrowser, as its page says: in place of playwright-core.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const {
  STACK_FOLDER = '',
  STACK_URL = '',
  STACK_CHROMIUM = '',
  STACK_FLAGS = '[]',
  STACK_MODE,
} = process.env;
const { chromium } = createRequire(join(STACK_FOLDER, 'package.json'))('rebrowser-playwright-core');
const browser = await chromium.launch({
  executablePath: STACK_CHROMIUM,
  headless: STACK_MODE === 'headless',
  args: JSON.parse(STACK_FLAGS),
});
const page = await browser.newPage();
await page.goto(STACK_URL);
await page.click('#press');
