// Taiko: buttons by their words.
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
process.env['TAIKO_BROWSER_PATH'] = STACK_CHROMIUM;
const { openBrowser, goto, waitFor, click } = createRequire(join(STACK_FOLDER, 'package.json'))('taiko');
const args = [...JSON.parse(STACK_FLAGS), `--user-data-dir=${STACK_PROFILE}`];
await openBrowser({ headless: STACK_MODE === 'headless', args });
await goto(STACK_URL);
await waitFor('Press');
await click('Press');
