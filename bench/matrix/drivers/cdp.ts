import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { profileOf, QUIET } from '../browsers/chromium.ts';
import { endWith, eventually } from '../lib/process.ts';
import { program } from '../lib/programs.ts';
import type { Visit } from '../lib/types.ts';

/** Speaks Chrome's developer protocol over a pipe, as a driver does that leaves out everything a page could notice. */

type Params = Readonly<Record<string, unknown>>;
type Send = (method: string, params?: Params, sessionId?: string) => Promise<Record<string, unknown>>;

/** Messages are JSON texts that end in NUL; 3 is written to and 4 is read from. */
function speak(write: Writable, read: Readable): Send {
  const waiting = new Map<number, (answer: Record<string, unknown>) => void>();
  let id = 0;
  let rest = '';
  read.on('data', (chunk: Buffer) => {
    const texts = (rest + chunk.toString('utf8')).split('\0');
    rest = texts.pop() ?? '';
    for (const text of texts) {
      const message = JSON.parse(text) as { id?: number; result?: Record<string, unknown> };
      if (message.id !== undefined) waiting.get(message.id)?.(message.result ?? {});
    }
  });
  return (method, params = {}, sessionId) =>
    new Promise((resolve) => {
      id += 1;
      waiting.set(id, resolve);
      write.write(`${JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) })}\0`);
    });
}

export interface CdpOptions {
  readonly flags?: readonly string[];
  /** Domains that are enabled before the page is opened. */
  readonly enable?: readonly string[];
  readonly userAgent?: string;
  /** Presses the button: by input events, with force and a path or without, or by a script in a world that the page does not see. */
  readonly press?: 'input' | 'input with force' | 'script';
}

type Child = ReturnType<typeof spawn>;
type Place = Pick<Visit, 'directory' | 'environment' | 'defer'>;

export type Page = (method: string, params?: Params) => Promise<Record<string, unknown>>;

async function pressByScript(page: Page): Promise<void> {
  const { frameTree } = (await page('Page.getFrameTree')) as { frameTree: { frame: { id: string } } };
  const world = { frameId: frameTree.frame.id, worldName: 'aside' };
  const { executionContextId } = await page('Page.createIsolatedWorld', world);
  const expression = "document.querySelector('#press').click()";
  await page('Runtime.evaluate', { expression, contextId: executionContextId });
}

async function pressByInput(page: Page, force: number): Promise<void> {
  const mouse = (type: string, x: number, y: number, extra: Params = {}) =>
    page('Input.dispatchMouseEvent', { type, x, y, ...extra });
  if (force > 0)
    for (let step = 0; step < 20; step += 1) await mouse('mouseMoved', 80 + step * 11, 400 - step * 9);
  const button = { button: 'left', clickCount: 1, ...(force > 0 && { force }) };
  await mouse('mousePressed', 300, 220, { ...button, buttons: 1 });
  await mouse('mouseReleased', 300, 220, button);
}

/** Opens a browser with one empty page. No domain is enabled, so the page cannot notice the connection. */
export async function attachByCdp(
  visit: Place,
  { flags = [] }: Pick<CdpOptions, 'flags'> = {},
): Promise<Page> {
  const args = [...QUIET, `--user-data-dir=${profileOf(visit)}`, '--remote-debugging-pipe', ...flags];
  const child: Child = spawn(program('chromium'), [...args, 'about:blank'], {
    cwd: visit.directory,
    detached: true,
    env: visit.environment,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  endWith(visit, child);
  const send = speak(child.stdio[3] as Writable, child.stdio[4] as Readable);
  const page = await eventually(async () => {
    const { targetInfos } = (await send('Target.getTargets')) as {
      targetInfos?: { targetId: string; type: string }[];
    };
    const found = targetInfos?.find(({ type }) => type === 'page');
    if (!found) throw new Error('Chromium opened no page');
    return found;
  });
  const { sessionId } = (await send('Target.attachToTarget', { targetId: page.targetId, flatten: true })) as {
    sessionId: string;
  };
  return (method, params) => send(method, params, sessionId);
}

export async function openByCdp(visit: Visit, options: CdpOptions): Promise<void> {
  const page = await attachByCdp(visit, options);
  for (const domain of options.enable ?? []) await page(`${domain}.enable`);
  if (options.userAgent !== undefined)
    await page('Emulation.setUserAgentOverride', { userAgent: options.userAgent });
  const { press } = options;
  await page('Page.navigate', { url: press ? visit.pressUrl : visit.url });
  if (!press) return;
  await visit.ready();
  await (press === 'script' ? pressByScript(page) : pressByInput(page, press === 'input' ? 0 : 0.5));
}
