// Puppeteer with ghost-cursor, which moves as a hand does.
import { chromium, flags, headless, load, profile, url } from './stack.mjs';

const { default: puppeteer } = await import(load.resolve('puppeteer-core'));
const { createCursor } = load('ghost-cursor');
const browser = await puppeteer.launch({
  executablePath: chromium,
  userDataDir: profile,
  headless,
  defaultViewport: null,
  ignoreDefaultArgs: ['--enable-automation'],
  args: [...flags, '--disable-blink-features=AutomationControlled'],
});
const [page] = await browser.pages();
const cursor = createCursor(page);
await page.goto(url);
await page.waitForSelector('#press');
await cursor.click('#press');
