// Puppeteer with the patches of rebrowser, as its page says: in place of puppeteer-core.
import { chromium, flags, headless, load, profile, url } from './stack.mjs';

const puppeteer = load('rebrowser-puppeteer-core');
const browser = await puppeteer.launch({
  executablePath: chromium,
  userDataDir: profile,
  headless,
  defaultViewport: null,
  args: flags,
});
const [page] = await browser.pages();
await page.goto(url);
await page.waitForSelector('#press');
await page.click('#press');
