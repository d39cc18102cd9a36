import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { KID } from '../support/constants.ts';
import type { GpdProcess } from '../support/process.ts';
import { describeWhereAllowed } from './support/allowed.ts';
import { type House, makeHouse } from './support/house.ts';
import { judge, judgeFiles, judgeTables } from './support/judge.ts';
import { type Book, newBook, PURPOSE, runLoad, visit } from './support/load.ts';
import { refusalsOf } from './support/refusals.ts';
import { sized, tell } from './support/size.ts';
import { mountSmallDisk, refusedMount, type SmallDisk } from './support/tmpfs.ts';

const DISK_MB = 40;
const RESERVE_MB = 4;
const ROUNDS = sized(2, 20);
const ERASURES = 5;

let disk: SmallDisk;
let house: House;
let gpd: GpdProcess;
const reserve = (): string => join(house.dataDir, 'reserve');
const reserved = (): number => (existsSync(reserve()) ? statSync(reserve()).size : 0);
const whole = (): Promise<void> =>
  vi.waitFor(() => expect(reserved()).toBe(RESERVE_MB * 1024 * 1024), { timeout: 20_000 });

/** Under load until nothing more is taken: the disk is full, and stays so. */
async function fillUnderLoad(book: Book): Promise<void> {
  let over = false;
  // An erasure would give its reserve up to what fills the disk here.
  const load = runLoad(house, book, () => over, { erasers: 0 });
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

/** Writes are refused, checks are answered, and people are erased. */
async function liveOnAFullDisk(book: Book): Promise<number> {
  expect((await fetch(`${gpd.url}/healthz`)).status).toBe(200);
  // One alone may still find a place in the log.
  while (book.refusals.length < 1000 && (await visit(house, book)) !== null) disk.fill();
  expect(refusalsOf(book)).toEqual({});
  const [principalId = ''] = [...book.choices.keys()];
  const check = await house.post('/v1/consent/can-process', { principalId, purpose: PURPOSE });
  expect(check.status).toBe(200);

  const contested = new Set(book.contests.map(({ requestId }) => requestId));
  const people = book.visits.flatMap(({ answer }) =>
    answer?.visitorId && !contested.has(answer.requestId) ? [answer] : [],
  );
  for (const { requestId, visitorId } of people.slice(0, ERASURES)) {
    const reply = await house.post('/privacy/erase', {}, house.subject(visitorId ?? ''));
    expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 200 });
    const { receiptId, incomplete } = reply.json() as { receiptId: string; incomplete: boolean };
    expect(incomplete).toBe(false);
    book.erasures.push({ requestId, visitorId: visitorId ?? '', receiptId });
    expect((await house.get(`/v1/decisions/${requestId}`)).status).toBe(404);
  }
  return Math.min(people.length, ERASURES);
}

describeWhereAllowed('a disk that is full', refusedMount(), () => {
  beforeAll(async () => {
    disk = mountSmallDisk(DISK_MB);
    const settings = { GPD_DISK_RESERVE: String(RESERVE_MB) };
    house = await makeHouse({ dataDir: join(disk.path, 'gpd-data'), settings });
    gpd = await house.start(settings);
    await whole();
  });
  afterAll(async () => {
    await gpd.stop();
    await house.stop();
    disk.unmount();
  });

  it('refuses clearly, erases all the same, and goes on by itself when there is room', {
    timeout: 240_000,
  }, async () => {
    let erased = 0;
    const books: Book[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const book = newBook();
      books.push(book);
      await fillUnderLoad(book);
      expect(refusalsOf(book)).toEqual({});
      expect(book.refusals.length).toBeGreaterThan(0);
      erased += await liveOnAFullDisk(book);
      // As much as there was is kept for the next one.
      expect(reserved()).toBeGreaterThan(RESERVE_MB * 1024 * 1024 * 0.7);
      if (round % 2 === 1) {
        // A crash on a full disk, and a start on it.
        await gpd.kill9();
        gpd = await house.start({ GPD_DISK_RESERVE: String(RESERVE_MB) });
        erased += await liveOnAFullDisk(book);
      }
      disk.free();
      expect(await visit(house, newBook())).not.toBeNull();
      await judge(house, book);
    }
    await judgeTables(house);
    for (const book of books) await judgeFiles(house, book);
    const log = await house.verify();
    const sum = (of: (book: Book) => number): number => books.reduce((total, book) => total + of(book), 0);
    tell(
      'disk full',
      `${ROUNDS} rounds, ${sum((b) => b.acknowledged)} answered, ${sum((b) => b.refusals.length)} refused with 503, ` +
        `${erased} erased on the full disk, nothing lost; log of ${log} entries verified`,
    );
  });

  it('`gpd erase` works on a full disk where no server runs', async () => {
    const answer = await visit(house, newBook());
    await gpd.stop();
    disk.fill();
    const ran = await house.cli([
      'erase',
      '--tenant',
      KID,
      '--request',
      answer?.requestId ?? '',
      '--yes',
      '--json',
    ]);
    expect({ code: ran.code, stderr: ran.stderr }).toMatchObject({ code: 0 });
    expect(JSON.parse(ran.stdout)).toMatchObject({ incomplete: false });
    // What is refused is said in a sentence.
    disk.fill();
    const other = await house.cli(['tenants', 'add', 'no-room', '--origin', 'https://other.example']);
    expect(other.code).not.toBe(0);
    expect(other.stderr).toMatch(/^gpd: .+\n$/);
    gpd = await house.start({ GPD_DISK_RESERVE: String(RESERVE_MB) });
    expect((await house.get(`/v1/decisions/${answer?.requestId}`)).status).toBe(404);
    disk.free();
  });
});
