// A person's own profile driven by patchright: launchPersistentContext, as its own page advises.
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
const { chromium } = createRequire(join(STACK_FOLDER, 'package.json'))('patchright');
const context = await chromium.launchPersistentContext(STACK_PROFILE, {
  executablePath: STACK_CHROMIUM,
  headless: STACK_MODE === 'headless',
  viewport: null,
  args: JSON.parse(STACK_FLAGS),
});
const page = context.pages()[0] ?? (await context.newPage());
await page.goto(STACK_URL);
await page.locator('#press').click();
