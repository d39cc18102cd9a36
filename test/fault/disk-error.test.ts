import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { GpdProcess } from '../support/process.ts';
import { describeWithTool } from '../support/tools.ts';
import { createHouse, type House } from './support/house.ts';
import { judge, judgeTables } from './support/judge.ts';
import { type Book, newBook, refusalsOf, runLoad, visit } from './support/load.ts';
import { sized, tell } from './support/size.ts';
import { breakDisk, type Injection, missingStrace, refusedStrace } from './support/strace.ts';

const ROUNDS = sized(4, 60);
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

async function rounds(name: string, injections: readonly Injection[]): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const injection of injections) outcomes.push(await through(injection));
  const log = await house.verify();
  const sum = (of: (book: Book) => number): number =>
    outcomes.reduce((total, { book }) => total + of(book), 0);
  const stops = outcomes.filter(({ stopped }) => stopped).length;
  tell(
    name,
    `${outcomes.length} rounds, ${stops} fail stops, ${sum((b) => b.acknowledged)} answered, ` +
      `${sum((b) => b.refusals.length)} refused with 503, ${sum((b) => b.unanswered)} cut off, nothing lost; log of ${log} entries verified`,
  );
  return outcomes;
}

const injectionsOf = (calls: string, error: Injection['error'], of: (i: number) => string): Injection[] =>
  Array.from({ length: ROUNDS }, (_, i) => ({ calls, error, when: of(i) }));
const once = (i: number): string => String(1 + ((i * 7) % 20));
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
    await rounds('fsync EIO, once', injectionsOf(SYNC, 'EIO', once));
  });

  it('every sync answers EIO: the server stops by itself', { timeout: ROUNDS * 80_000 }, async () => {
    const outcomes = await rounds(
      'fsync EIO, always',
      injectionsOf(SYNC, 'EIO', always).slice(0, ROUNDS / 2),
    );
    expect(outcomes.every(({ stopped }) => stopped)).toBe(true);
  });

  it('a sync that answers ENOSPC', { timeout: ROUNDS * 80_000 }, async () => {
    await rounds('fsync ENOSPC, once', injectionsOf(SYNC, 'ENOSPC', once).slice(0, ROUNDS / 2));
  });

  it('every write answers ENOSPC: 503, and served again without a restart', {
    timeout: ROUNDS * 80_000,
  }, async () => {
    const outcomes = await rounds('pwrite64 ENOSPC', injectionsOf('pwrite64', 'ENOSPC', always));
    for (const { book, stopped } of outcomes) {
      expect(stopped).toBe(false);
      expect(book.refusals.length).toBeGreaterThan(0);
    }
  });

  it('a write that answers EIO', { timeout: ROUNDS * 80_000 }, async () => {
    await rounds('pwrite64 EIO, once', injectionsOf('pwrite64', 'EIO', once));
  });
}
