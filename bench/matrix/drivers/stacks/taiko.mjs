// Taiko: buttons by their words.
import { chromium, flags, headless, load, profile, url } from './stack.mjs';

process.env['TAIKO_BROWSER_PATH'] = chromium;
const { openBrowser, goto, waitFor, click } = load('taiko');
const args = [...flags, `--user-data-dir=${profile}`];
await openBrowser({ headless, args });
await goto(url);
await waitFor('Press');
await click('Press');
