// Stagehand without a language model: its own browser and its page's methods.
import { chromium, headless, importInstalled, profile, url } from './stack.mjs';

const { localBrowser, Stagehand } = await importInstalled(
  'node_modules/@browserbasehq/stagehand/dist/index.mjs',
);
const browser = await localBrowser.launch({
  executablePath: chromium,
  userDataDir: profile,
  headless,
  chromiumSandbox: process.getuid?.() !== 0,
});
await Stagehand.create({ browser });
const [page] = await browser.context.pages();
await page.goto(url);
await page.waitForSelector('#press');
await page.locator('#press').click();
