import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import type { GpdProcess } from '../support/process.ts';
import { sized } from '../support/sized.ts';
import { describeWithTool } from '../support/tools.ts';
import { createHouse, type House } from './support/house.ts';
import { judge, judgeFiles, judgeTables } from './support/judge.ts';
import { type Book, type Erased, newBook, PURPOSE, refusalsOf, runLoad, visit } from './support/load.ts';

/** A disk of a few megabytes, which can really be filled. */

interface SmallDisk {
  readonly path: string;
  /** Fills it to the last byte. */
  fill(): number;
  /** Gives back what `fill` took. */
  free(): void;
  unmount(): void;
}

function mountSmallDisk(megabytes: number): SmallDisk {
  const path = tempDir('small-disk');
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path], {
    encoding: 'utf8',
  });
  if (mounted.status !== 0) throw new Error(mounted.error?.message ?? mounted.stderr);
  const unmount = (): void => void spawnSync('umount', ['-l', path]);
  process.once('exit', unmount);
  const filler = join(path, 'filler');
  return {
    path,
    fill() {
      const file = openSync(filler, 'a');
      let filled = 0;
      // A page is what tmpfs gives; the last ones go one by one.
      for (const size of [1024 * 1024, 4096]) {
        const chunk = Buffer.alloc(size, 7);
        try {
          for (;;) filled += writeSync(file, chunk);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
      closeSync(file);
      return filled;
    },
    free: () => rmSync(filler, { force: true }),
    unmount() {
      process.off('exit', unmount);
      unmount();
    },
  };
}

/** Null when a file system can be mounted here; else why not. */
function refusedMount(): string | null {
  try {
    mountSmallDisk(1).unmount();
    return null;
  } catch (error) {
    return `a tmpfs cannot be mounted here (root alone may): ${String(error).trim()}`;
  }
}

const DISK_MB = 40;
const ROUNDS = sized('FAULT', 2, 20);
const ERASURES = 5;

type Person = Pick<Erased, 'requestId' | 'visitorId'>;

let disk: SmallDisk;
let house: House;
let gpd: GpdProcess;

/** Under load until nothing more is taken: the disk is full, and stays so. */
async function fillUnderLoad(book: Book): Promise<void> {
  let over = false;
  const load = runLoad(house, book, () => over);
  while (book.acknowledged < 15) await sleep(5);
  disk.fill();
  for (let quiet = 0, last = -1; quiet < 10; quiet += 1) {
    await sleep(50);
    if (book.acknowledged !== last) quiet = 0;
    last = book.acknowledged;
    disk.fill();
  }
  over = true;
  await load;
}

/** Writes are refused, erasures among them, and checks are answered. */
async function liveOnAFullDisk(book: Book): Promise<Person[]> {
  expect((await fetch(`${gpd.url}/healthz`)).status).toBe(200);
  // One alone may still find a place in the log.
  while (book.refusals.length < 1000 && (await visit(house, book)) !== null) disk.fill();
  expect(refusalsOf(book)).toEqual({});
  const ready = await fetch(`${gpd.url}/readyz`);
  expect({ code: ready.status, body: await ready.json() }).toMatchObject({
    code: 200,
    body: { status: 'ready', degraded: ['writes'] },
  });
  const lines = gpd.logs().match(/"event":"disk-full".*"requestId":"req_\w+"/g) ?? [];
  expect(lines).toHaveLength(1);
  const [principalId = ''] = [...book.choices.keys()];
  const check = await house.post('/v1/consent/can-process', { principalId, purpose: PURPOSE });
  expect(check.status).toBe(200);

  const erased = new Set(book.erasures.map(({ requestId }) => requestId));
  const contested = new Set(book.contests.map(({ requestId }) => requestId));
  const people = book.visits.flatMap(({ answer }) =>
    answer?.visitorId && !contested.has(answer.requestId) && !erased.has(answer.requestId)
      ? [{ requestId: answer.requestId, visitorId: answer.visitorId }]
      : [],
  );
  const refused: Person[] = [];
  for (const person of people.slice(0, ERASURES)) {
    const status = await erase(book, person);
    if (status === 503) refused.push(person);
    // gpd did not half do an erasure that it refused.
    expect((await house.get(`/v1/decisions/${person.requestId}`)).status).toBe(status === 503 ? 200 : 404);
  }
  return refused;
}

/** 200 even where nothing is complete yet: its rows are gone, and what is left is finished once there is room. */
async function erase(book: Book, { requestId, visitorId }: Person): Promise<number> {
  disk.fill();
  const reply = await house.post('/privacy/erase', {}, house.subject(visitorId));
  expect({ status: reply.status, text: reply.text }).toMatchObject({ status: expect.toBeOneOf([200, 503]) });
  if (reply.status === 503) expect(reply.headers['retry-after']).toBeDefined();
  else
    book.erasures.push({
      requestId,
      visitorId,
      receiptId: (reply.json() as { receiptId: string }).receiptId,
    });
  return reply.status;
}

/** A start on a full disk serves, or ends with a sentence; the unit then starts it again until there is room. */
async function startOnAFullDisk(): Promise<GpdProcess | null> {
  disk.fill();
  return house.start().catch((error: unknown) => {
    expect(String(error)).toMatch(/gpd serve ended with 75: /);
    return null;
  });
}

// Leave to mount is nothing that could be installed.
describeWithTool('a disk that is full', refusedMount(), suite, { optional: true });

function suite(): void {
  beforeAll(async () => {
    disk = mountSmallDisk(DISK_MB);
    house = await createHouse({ dataDir: join(disk.path, 'gpd-data') });
    gpd = await house.start();
  });
  afterAll(async () => {
    await gpd.stop();
    await house.stop();
    disk.unmount();
  });

  it('refuses clearly, erasures too, and goes on by itself when there is room', {
    timeout: 240_000,
  }, async () => {
    let refused = 0;
    const books: Book[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const book = newBook();
      books.push(book);
      await fillUnderLoad(book);
      expect(refusalsOf(book)).toEqual({});
      expect(book.refusals.length).toBeGreaterThan(0);
      const waiting = await liveOnAFullDisk(book);
      if (round % 2 === 1) {
        // A crash on a full disk, and a start on it.
        await gpd.kill9();
        const started = await startOnAFullDisk();
        disk.free();
        gpd = started ?? (await house.start());
      }
      disk.free();
      expect(await visit(house, newBook())).not.toBeNull();
      const ready = async (): Promise<unknown> => {
        await visit(house, newBook());
        return (await fetch(`${gpd.url}/readyz`)).json();
      };
      await expect.poll(ready).toMatchObject({ degraded: [] });
      for (const { requestId, visitorId } of waiting) {
        const reply = await house.post('/privacy/erase', {}, house.subject(visitorId));
        expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 200 });
        const { receiptId } = reply.json() as { receiptId: string };
        book.erasures.push({ requestId, visitorId, receiptId });
      }
      refused += waiting.length;
      await judge(house, book);
    }
    expect(refused).toBeGreaterThan(0);
    await judgeTables(house);
    for (const book of books) await judgeFiles(house, book);
    await house.verify();
  });

  it('`gpd erase` on a full disk says so, and works once there is room', async () => {
    const answer = await visit(house, newBook());
    await gpd.stop();
    disk.fill();
    const erase = ['erase', '--tenant', KID, '--request', answer?.requestId ?? '', '--yes', '--json'];
    const ran = await house.cli(erase);
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({
      code: 75,
      stderr: expect.stringMatching(/^gpd: .*disk.*\n$/),
    });
    disk.free();
    const again = await house.cli(erase);
    expect({ code: again.code, stderr: again.stderr }).toMatchObject({ code: 0 });
    expect(JSON.parse(again.stdout)).toMatchObject({ incomplete: false });
    gpd = await house.start();
    expect((await house.get(`/v1/decisions/${answer?.requestId}`)).status).toBe(404);
  });
}
