import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { GpdProcess } from '../support/process.ts';
import { sized } from '../support/sized.ts';
import { describeWithTool } from '../support/tools.ts';
import { createHouse, type House } from './support/house.ts';
import { judge, judgeTables } from './support/judge.ts';
import { type Book, newBook, refusalsOf, runLoad, visit } from './support/load.ts';

/** A disk that fails: strace answers a running process's system calls in the kernel's place. */

const tried = spawnSync('strace', ['-f', '-e', 'trace=none', 'true'], { encoding: 'utf8' });

function missingStrace(): string | null {
  return tried.error ? 'strace is not installed (apt-get install strace)' : null;
}

/** Null when a process may be traced here; else why not. */
function refusedStrace(): string | null {
  return tried.error || tried.status === 0 ? null : `strace may not trace here: ${tried.stderr.trim()}`;
}

interface Injection {
  /** `fsync,fdatasync` */
  readonly calls: string;
  readonly error: 'EIO' | 'ENOSPC';
  /** `3`: the third call alone; `1+`: every call. */
  readonly when: string;
}

/** From now on these calls fail; the function that is returned mends the disk. */
async function breakDisk(pid: number, { calls, error, when }: Injection): Promise<() => Promise<void>> {
  const inject = `inject=${calls}:error=${error}:when=${when}`;
  const args = ['-f', '-q', '-e', `trace=${calls}`, '-e', 'signal=none', '-e', inject, '-o', '/dev/null'];
  const tracer = spawn('strace', [...args, '-p', String(pid)], { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  tracer.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const exited = once(tracer, 'exit');
  // It says nothing when it is ready; the kernel does.
  for (let i = 0; !(await isTraced(pid)); i += 1) {
    if (i > 500 || tracer.exitCode !== null) throw new Error(`strace did not attach: ${output}`);
    await sleep(10);
  }
  return async () => {
    if (tracer.exitCode === null && tracer.signalCode === null) tracer.kill('SIGINT');
    await exited;
  };
}

async function isTraced(pid: number): Promise<boolean> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => []);
  for (const task of tasks) {
    const status = await readFile(`/proc/${pid}/task/${task}/status`, 'utf8').catch(() => '');
    if (/^TracerPid:\t0$/m.test(status)) return false;
  }
  return tasks.length > 0;
}

const ROUNDS = sized('FAULT', 4, 60);
const BROKEN_MS = 1200;
const FAIL_STOP = 1;
const SYNC = 'fsync,fdatasync';

let house: House;
let gpd: GpdProcess;

interface Outcome {
  readonly book: Book;
  readonly stopped: boolean;
}

/** Load, the fault in the middle of it, and what came of it: a stop by itself, or answers that are clear. */
async function through(injection: Injection): Promise<Outcome> {
  const book = newBook();
  let over = false;
  let code: number | null | undefined;
  const running = gpd;
  void running.exited.then((exit) => {
    code = exit.code;
  });
  const load = runLoad(house, book, () => over || code !== undefined);
  while (book.acknowledged < 15) await sleep(5);
  const mend = await breakDisk(running.pid, injection);
  for (let waited = 0; waited < BROKEN_MS && code === undefined; waited += 20) await sleep(20);
  await mend();
  await sleep(100);
  over = true;
  await load;
  const stopped = code !== undefined;
  if (stopped) {
    expect({ code, logs: running.logs().slice(-1500) }).toMatchObject({
      code: FAIL_STOP,
      logs: expect.stringContaining('"event":"fail-stop"') as string,
    });
    gpd = await house.start();
  }
  expect(refusalsOf(book)).toEqual({});
  // Served again without anybody's help, on the disk that was mended.
  expect(await visit(house, newBook())).not.toBeNull();
  await judge(house, book);
  await judgeTables(house);
  return { book, stopped };
}

async function rounds(injections: readonly Injection[]): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const injection of injections) outcomes.push(await through(injection));
  await house.verify();
  return outcomes;
}

const injectionsOf = (calls: string, error: Injection['error'], of: (i: number) => string): Injection[] =>
  Array.from({ length: ROUNDS }, (_, i) => ({ calls, error, when: of(i) }));
const nowAndThen = (i: number): string => String(1 + ((i * 7) % 20));
const always = (): string => '1+';

const refused = refusedStrace();

// Leave to trace is nothing that could be installed.
describeWithTool('a disk that fails under a running server', missingStrace() ?? refused, suite, {
  optional: refused !== null,
});

function suite(): void {
  beforeAll(async () => {
    house = await createHouse();
    gpd = await house.start();
  });
  afterAll(async () => {
    await gpd.stop();
    await house.stop();
  });

  it('a sync that answers EIO, now and then', { timeout: ROUNDS * 80_000 }, async () => {
    await rounds(injectionsOf(SYNC, 'EIO', nowAndThen));
  });

  it('every sync answers EIO: the server stops by itself', { timeout: ROUNDS * 80_000 }, async () => {
    const outcomes = await rounds(injectionsOf(SYNC, 'EIO', always).slice(0, ROUNDS / 2));
    expect(outcomes.every(({ stopped }) => stopped)).toBe(true);
  });

  it('a sync that answers ENOSPC', { timeout: ROUNDS * 80_000 }, async () => {
    await rounds(injectionsOf(SYNC, 'ENOSPC', nowAndThen).slice(0, ROUNDS / 2));
  });

  it('every write answers ENOSPC: 503, and served again without a restart', {
    timeout: ROUNDS * 80_000,
  }, async () => {
    const outcomes = await rounds(injectionsOf('pwrite64', 'ENOSPC', always));
    for (const { book, stopped } of outcomes) {
      expect(stopped).toBe(false);
      expect(book.refusals.length).toBeGreaterThan(0);
    }
  });

  it('a write that answers EIO', { timeout: ROUNDS * 80_000 }, async () => {
    await rounds(injectionsOf('pwrite64', 'EIO', nowAndThen));
  });
}
