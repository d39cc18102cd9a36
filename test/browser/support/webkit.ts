import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { startDisplay } from '../../../bench/matrix/lib/display.ts';
import { eventually } from '../../../bench/matrix/lib/process.ts';
import { missingPrograms, program } from '../../../bench/matrix/lib/programs.ts';
import { freePort } from '../../support/ports.ts';
import { describeWithTool } from '../../support/tools.ts';

/** A suite in WebKitGTK's small browser, by W3C WebDriver: as near to Safari as Linux comes. One browser more than is required. */
export function describeInWebkit(name: string, suite: () => void): void {
  describeWithTool(name, missingPrograms(['minibrowser', 'webkitdriver', 'xvfb']), suite, { optional: true });
}

export interface Webkit {
  goto(url: string): Promise<unknown>;
  /** @param body of an async function in the page */
  run<T>(body: string): Promise<T>;
  /** Presses the element once it is there. @param element an expression of the page */
  click(element: string): Promise<unknown>;
  quit(): Promise<void>;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill();
  await exited;
}

export async function startWebkit(): Promise<Webkit> {
  const display = await startDisplay();
  const port = await freePort();
  const driver = spawn(program('webkitdriver'), [`--port=${port}`], {
    env: { ...process.env, DISPLAY: display.name, LIBGL_ALWAYS_SOFTWARE: '1' },
    stdio: 'ignore',
  });
  const call = async (path: string, body?: object, method = 'POST'): Promise<unknown> => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const answer = await fetch(`http://127.0.0.1:${port}/session${path}`, init);
    const { value } = (await answer.json()) as { value: unknown };
    if (!answer.ok) throw new Error(JSON.stringify(value));
    return value;
  };
  const browser = { binary: program('minibrowser'), args: ['--automation'] };
  const capabilities = { alwaysMatch: { 'webkitgtk:browserOptions': browser } };
  const opened = await eventually(() => call('', { capabilities }), 120_000);
  const session = `/${(opened as { sessionId: string }).sessionId}`;
  return {
    goto: (url) => call(`${session}/url`, { url }),
    async run<T>(body: string) {
      const script = `const done = arguments[arguments.length - 1];
        (async () => { ${body} })().then((value) => done([value ?? null]), (error) => done(String(error)));`;
      const value = await call(`${session}/execute/async`, { script, args: [] });
      if (!Array.isArray(value)) throw new Error(String(value));
      return value[0] as T;
    },
    async click(element) {
      const script = `return ${element}`;
      const found = await eventually(() => call(`${session}/execute/sync`, { script, args: [] }), 60_000);
      const [id] = Object.values(found as Record<string, string>);
      return call(`${session}/element/${id}/click`, {});
    },
    async quit() {
      await call(session, undefined, 'DELETE').catch(() => {});
      await end(driver);
      await display.stop();
    },
  };
}
