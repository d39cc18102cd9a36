// A person's own profile driven by patchright: launchPersistentContext, as its own page advises.
import { chromium, flags, headless, load, profile, url } from './stack.mjs';

const { chromium: playwright } = load('patchright');
const context = await playwright.launchPersistentContext(profile, {
  executablePath: chromium,
  headless,
  viewport: null,
  args: flags,
});
const page = context.pages()[0] ?? (await context.newPage());
await page.goto(url);
await page.locator('#press').click();
