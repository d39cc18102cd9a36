import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { profileOf, QUIET } from '../browsers/chromium.ts';
import { endWith, eventually } from '../lib/process.ts';
import { program } from '../lib/programs.ts';
import type { Visit } from '../lib/types.ts';

/** The developer protocol by hand, over a pipe: what a driver does once everything that gives it away is left out. */

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
}

export async function openByCdp(visit: Visit, options: CdpOptions): Promise<void> {
  const args = [
    ...QUIET,
    `--user-data-dir=${profileOf(visit)}`,
    '--remote-debugging-pipe',
    ...(options.flags ?? []),
  ];
  const child = spawn(program('chromium'), [...args, 'about:blank'], {
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
  for (const domain of options.enable ?? []) await send(`${domain}.enable`, {}, sessionId);
  if (options.userAgent !== undefined)
    await send('Emulation.setUserAgentOverride', { userAgent: options.userAgent }, sessionId);
  await send('Page.navigate', { url: visit.url }, sessionId);
}
