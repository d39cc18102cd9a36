// puppeteer-real-browser, with its own click.
import { mkdirSync } from 'node:fs';
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
const { connect } = createRequire(join(STACK_FOLDER, 'package.json'))('puppeteer-real-browser');
// It writes its log there before the browser does.
mkdirSync(STACK_PROFILE, { recursive: true });
const { page } = await connect({
  headless: STACK_MODE === 'headless',
  args: JSON.parse(STACK_FLAGS),
  customConfig: { chromePath: STACK_CHROMIUM, userDataDir: STACK_PROFILE },
  connectOption: { defaultViewport: null },
  disableXvfb: true,
});
await page.goto(STACK_URL);
await page.waitForSelector('#press');
await (STACK_MODE === 'real click' ? page.realClick('#press') : page.click('#press'));
