// chrome-remote-interface: the developer protocol, with the domains that its page enables.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const {
  STACK_FOLDER = '',
  STACK_URL = '',
  STACK_CHROMIUM = '',
  STACK_PROFILE = '',
  STACK_FLAGS = '[]',
  STACK_MODE,
} = process.env;
const CDP = createRequire(join(STACK_FOLDER, 'package.json'))('chrome-remote-interface');
const port = 9333;
const flags = [...JSON.parse(STACK_FLAGS), `--user-data-dir=${STACK_PROFILE}`];
spawn(
  STACK_CHROMIUM,
  [
    ...flags,
    `--remote-debugging-port=${port}`,
    ...(STACK_MODE === 'headless' ? ['--headless=new'] : []),
    'about:blank',
  ],
  { stdio: 'ignore' },
);
/** @returns {Promise<any>} */
const dial = () => CDP({ port }).catch(() => sleep(500).then(dial));
const { Network, Page, Runtime, Input } = await dial();
await Promise.all([Network.enable(), Page.enable()]);
await Page.navigate({ url: STACK_URL });
const expression =
  "JSON.stringify(document.querySelector('#press')?.getBoundingClientRect().toJSON() ?? null)";
/** @returns {Promise<{ x: number, y: number, width: number, height: number }>} */
const box = async () => {
  const { result } = await Runtime.evaluate({ expression });
  return JSON.parse(result.value ?? 'null') ?? sleep(300).then(box);
};
const { x, y, width, height } = await box();
const at = { x: x + width / 2, y: y + height / 2, button: 'left', clickCount: 1 };
await Input.dispatchMouseEvent({ type: 'mousePressed', ...at });
await Input.dispatchMouseEvent({ type: 'mouseReleased', ...at });
