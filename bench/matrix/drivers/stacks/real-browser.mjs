// puppeteer-real-browser, with its own click.
import { mkdirSync } from 'node:fs';
import { chromium, flags, headless, load, mode, profile, url } from './stack.mjs';

const { connect } = load('puppeteer-real-browser');
// It writes its log there before the browser does.
mkdirSync(profile, { recursive: true });
const { page } = await connect({
  headless,
  args: flags,
  customConfig: { chromePath: chromium, userDataDir: profile },
  connectOption: { defaultViewport: null },
  disableXvfb: true,
});
await page.goto(url);
await page.waitForSelector('#press');
await (mode === 'real click' ? page.realClick('#press') : page.click('#press'));
