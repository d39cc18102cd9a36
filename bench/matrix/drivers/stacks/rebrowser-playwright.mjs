// Playwright with the patches of rebrowser, as its page says: in place of playwright-core.
import { chromium, flags, headless, load, url } from './stack.mjs';

const { chromium: playwright } = load('rebrowser-playwright-core');
const browser = await playwright.launch({
  executablePath: chromium,
  headless,
  args: flags,
});
const page = await browser.newPage();
await page.goto(url);
await page.click('#press');
