// chrome-remote-interface: the developer protocol, with the domains that its page enables.
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium, flags, headless, load, profile, url } from './stack.mjs';

const CDP = load('chrome-remote-interface');
const port = 9333;
spawn(
  chromium,
  [
    ...flags,
    `--user-data-dir=${profile}`,
    `--remote-debugging-port=${port}`,
    ...(headless ? ['--headless=new'] : []),
    'about:blank',
  ],
  { stdio: 'ignore' },
);
/** @returns {Promise<any>} */
const dial = () => CDP({ port }).catch(() => sleep(500).then(dial));
const { Network, Page, Runtime, Input } = await dial();
await Promise.all([Network.enable(), Page.enable()]);
await Page.navigate({ url });
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
