import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { QUIET } from '../browsers/chromium.ts';
import { eventually, freePort, start } from '../lib/process.ts';
import { program } from '../lib/programs.ts';
import type { Visit } from '../lib/types.ts';

/** W3C WebDriver: the requests that Selenium sends to chromedriver, WebKitWebDriver and their like. */

type Capabilities = Readonly<Record<string, unknown>>;

async function post(address: string, body: unknown): Promise<unknown> {
  const answer = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { value } = (await answer.json()) as { value: unknown };
  if (!answer.ok) throw new Error(`WebDriver says ${JSON.stringify(value).slice(0, 300)}`);
  return value;
}

/** @returns the address of a new session, which ends with the visit */
async function openSession(visit: Visit, port: number, capabilities: Capabilities): Promise<string> {
  const base = `http://127.0.0.1:${port}`;
  await eventually(async () => {
    const answer = await fetch(`${base}/status`);
    if (!answer.ok) throw new Error(`the driver answers ${answer.status}`);
  });
  const body = { capabilities: { alwaysMatch: capabilities } };
  const { sessionId } = (await post(`${base}/session`, body)) as { sessionId: string };
  const session = `${base}/session/${sessionId}`;
  // Ended explicitly: the browser is a child of the driver, but not always in its process group.
  visit.defer(() => fetch(session, { method: 'DELETE', signal: AbortSignal.timeout(5000) }));
  return session;
}

export interface ChromedriverOptions {
  readonly args?: readonly string[];
  /** Further `goog:chromeOptions`. */
  readonly options?: Capabilities;
  /** Run in every document before its own scripts. */
  readonly script?: string;
  /** Runs a copy of the driver without its `cdc_` names, as undetected-chromedriver does. */
  readonly namesRemoved?: boolean;
}

const NAMES = /\{window\.cdc_.*?;\}/gs;

/** Replaces the names by others of the same length, so that the program still runs. */
function withoutNames(visit: Visit, path: string): string {
  const copy = join(visit.directory, 'chromedriver');
  const text = readFileSync(path).toString('latin1');
  const patched = text.replace(NAMES, (block) => `{${' '.repeat(block.length - 2)}}`);
  if (patched === text) throw new Error('this chromedriver sets no names that could be removed');
  writeFileSync(copy, Buffer.from(patched, 'latin1'), { mode: 0o755 });
  return copy;
}

export async function openByChromedriver(visit: Visit, options: ChromedriverOptions = {}): Promise<void> {
  const port = await freePort();
  const path = program('chromedriver');
  start(visit, options.namesRemoved === true ? withoutNames(visit, path) : path, [`--port=${port}`]);
  const session = await openSession(visit, port, {
    browserName: 'chrome',
    'goog:chromeOptions': {
      binary: program('chromium'),
      args: [...QUIET, ...(options.args ?? [])],
      ...options.options,
    },
  });
  if (options.script !== undefined) {
    const params = { source: options.script };
    await post(`${session}/goog/cdp/execute`, { cmd: 'Page.addScriptToEvaluateOnNewDocument', params });
  }
  await post(`${session}/url`, { url: visit.pressUrl });
  await visit.ready();
  const found = await post(`${session}/element`, { using: 'css selector', value: '#press' });
  const [element] = Object.values(found as Record<string, string>);
  await post(`${session}/element/${element}/click`, {});
}

export async function openByWebKitDriver(visit: Visit): Promise<void> {
  const port = await freePort();
  start(visit, program('webkitdriver'), [`--port=${port}`]);
  const session = await openSession(visit, port, {
    'webkitgtk:browserOptions': { binary: program('minibrowser'), args: ['--automation'] },
  });
  await post(`${session}/url`, { url: visit.url });
}
