import { attachByCdp } from '../../../bench/matrix/drivers/cdp.ts';
import type { Display } from '../../../bench/matrix/lib/display.ts';
import { tempDir } from '../../support/command.ts';

/** A visible Chromium that looks undriven: the protocol only moves the mouse and reads, without enabling a domain. */

export interface Person {
  goto(url: string): Promise<void>;
  /** Moves to what the expression finds and presses it, with force. */
  press(element: string): Promise<void>;
  /** The value of an expression in the page; no activation comes with it, unless it is asked for. */
  read(expression: string, more?: { readonly userGesture?: boolean }): Promise<unknown>;
  /** Until the expression is true: pages come and go meanwhile. */
  until(expression: string): Promise<void>;
  leave(): Promise<void>;
}

/** A person's browser has no protocol, which alone would set the WebDriver flag. */
const UNDRIVEN = '--disable-blink-features=AutomationControlled';
const POLL_MS = 50;
const WAIT_MS = 20_000;
const STEPS = 6;

export async function startPerson(display: Display, flags: readonly string[] = []): Promise<Person> {
  const undos: (() => unknown)[] = [];
  const page = await attachByCdp(
    {
      directory: tempDir('person'),
      environment: { ...process.env, DISPLAY: display.name },
      defer: (undo) => undos.push(undo),
    },
    { flags: [UNDRIVEN, ...flags] },
  );
  const read: Person['read'] = async (expression, options) => {
    const parameters = { awaitPromise: true, returnByValue: true, ...options };
    const answer = await page('Runtime.evaluate', { expression, ...parameters });
    return (answer as { result?: { value?: unknown } }).result?.value;
  };
  const until = async (expression: string): Promise<void> => {
    const deadline = Date.now() + WAIT_MS;
    while ((await read(`(async () => Boolean(await (${expression})))()`)) !== true) {
      if (Date.now() > deadline) throw new Error(`it never came true: ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  const mouse = (type: string, x: number, y: number, fields = {}) =>
    page('Input.dispatchMouseEvent', { type, x, y, ...fields });
  return {
    read,
    until,
    async goto(url) {
      await page('Page.navigate', { url });
      await until(`location.href === ${JSON.stringify(url)} && document.readyState === 'complete'`);
    },
    async press(element) {
      await until(`${element}?.getClientRects().length`);
      const { x, y, width, height } = (await read(
        `(${element}).getBoundingClientRect().toJSON()`,
      )) as DOMRectReadOnly;
      const at = [Math.round(x + width / 2), Math.round(y + height / 2)] as const;
      for (let step = STEPS; step >= 0; step -= 1)
        await mouse('mouseMoved', at[0] + step * 9, at[1] - step * 7);
      const button = { button: 'left', clickCount: 1, force: 0.5 };
      await mouse('mousePressed', ...at, { ...button, buttons: 1 });
      await mouse('mouseReleased', ...at, button);
    },
    async leave() {
      for (const undo of undos.reverse()) await undo();
    },
  };
}
