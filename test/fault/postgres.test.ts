import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { missingPostgres } from '../support/postgres.ts';
import type { GpdProcess } from '../support/process.ts';
import { describeWithTool } from '../support/tools.ts';
import type { House } from './support/house.ts';
import { judge, judgeTables } from './support/judge.ts';
import { killUnderLoad } from './support/kill.ts';
import { type Book, newBook, refusalsOf, runLoad, visit } from './support/load.ts';
import { createPostgresHouse, type PostgresHouse } from './support/postgres-house.ts';
import { sized, tell } from './support/size.ts';

const ROUNDS = sized(2, 25);
const KILLS = sized(4, 60);
const RECOVERED_MS = 60_000;

let place: PostgresHouse;
let house: House;
let gpd: GpdProcess;

async function untilServed(): Promise<number> {
  const startedAt = performance.now();
  while (performance.now() - startedAt < RECOVERED_MS) {
    if ((await visit(house, newBook())) !== null) return performance.now() - startedAt;
  }
  throw new Error(`not served again within ${RECOVERED_MS} ms:\n${gpd.logs().slice(-2000)}`);
}

interface Fault {
  readonly name: string;
  readonly strike: () => Promise<void>;
  readonly mend: () => Promise<void>;
  /** Duration of the fault. */
  readonly ms: number;
}

const signals = {
  stop: async (): Promise<void> => place.postgres.signal('SIGINT', 'postmaster'),
  kill: async (): Promise<void> => place.postgres.signal('SIGKILL', 'everybody'),
  hang: async (): Promise<void> => place.postgres.signal('SIGSTOP', 'everybody'),
  wake: async (): Promise<void> => place.postgres.signal('SIGCONT', 'everybody'),
  restart: async (): Promise<void> => place.postgres.restart(),
  nothing: async (): Promise<void> => {},
};

const FAULTS: readonly Fault[] = [
  { name: 'stopped and restarted', strike: signals.stop, mend: signals.restart, ms: 1500 },
  { name: 'killed with -9', strike: signals.kill, mend: signals.restart, ms: 500 },
  { name: 'hung for a moment', strike: signals.hang, mend: signals.wake, ms: 3000 },
];

async function throughFault(fault: Fault): Promise<{ book: Book; served: number }> {
  const book = newBook();
  let over = false;
  const load = runLoad(house, book, () => over);
  while (book.acknowledged < 20) await sleep(5);
  await sleep(Math.random() * 500);
  await fault.strike();
  await sleep(fault.ms);
  // It lives, whatever the database does.
  await expect(fetch(`${gpd.url}/healthz`).then(({ status }) => status)).resolves.toBe(200);
  await fault.mend();
  const served = await untilServed();
  await sleep(100);
  over = true;
  await load;
  expect(refusalsOf(book)).toEqual({});
  expect(book.unanswered).toBe(0);
  await judge(house, book);
  return { book, served };
}

describeWithTool('PostgreSQL under a running server', await missingPostgres(), () => {
  beforeAll(async () => {
    place = await createPostgresHouse();
    house = place.house;
    gpd = await house.start();
  });
  afterAll(async () => {
    await gpd.stop();
    await place.stop();
  });

  for (const fault of FAULTS) {
    it(`${fault.name} in mid-load: 503, then served again, nothing lost`, {
      timeout: ROUNDS * 120_000,
    }, async () => {
      let answered = 0;
      let refused = 0;
      let slowest = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        const { book, served } = await throughFault(fault);
        answered += book.acknowledged;
        refused += book.refusals.length;
        slowest = Math.max(slowest, served);
      }
      await judgeTables(house);
      const log = await house.verify();
      tell(
        `PostgreSQL ${fault.name}`,
        `${ROUNDS} rounds, ${answered} answered, ${refused} refused with 503, served again after ${Math.round(slowest)} ms at most, ` +
          `nothing lost; log of ${log} entries verified`,
      );
    });
  }

  it('hung for longer than anybody waits: every answer is a 503, and no check allows', {
    timeout: 240_000,
  }, async () => {
    const book = newBook();
    const granted = { principalId: 'granted-before', purposes: ['device-identification'] };
    expect((await house.post('/v1/consent/grant', granted)).status).toBe(201);
    await signals.hang();
    const startedAt = performance.now();
    const check = { principalId: granted.principalId, purpose: 'device-identification' };
    const requests = [
      ...Array.from({ length: 5 }, () => house.post('/v1/consent/can-process', check)),
      house.post('/v1/consent/withdraw', granted),
      house.get('/v1/decisions/req_01ARZ3NDEKTSV4RRFFQ69G5FAV'),
    ];
    const replies = await Promise.all([...requests, visit(house, book).then(() => book.refusals[0])]);
    const ms = performance.now() - startedAt;
    await signals.wake();
    expect(replies.map((reply) => reply?.status)).toEqual(replies.map(() => 503));
    for (const reply of replies) expect(reply?.headers['retry-after']).toMatch(/^\d+$/);
    const served = await untilServed();
    await judgeTables(house);
    tell(
      'PostgreSQL hung',
      `${replies.length} of ${replies.length} answered 503 within ${Math.round(ms)} ms, no check allowed; served again after ${Math.round(served)} ms`,
    );
  });

  it('kill -9 of the server on PostgreSQL loses nothing', { timeout: ROUNDS * 120_000 }, async () => {
    let answered = 0;
    for (let round = 0; round < KILLS; round += 1) {
      const book = await killUnderLoad(house, gpd, round);
      gpd = await house.start();
      await judge(house, book);
      await judgeTables(house);
      answered += book.acknowledged;
    }
    const log = await house.verify();
    tell(
      'kill -9, PostgreSQL',
      `${KILLS} rounds, ${answered} answered, nothing lost; log of ${log} entries verified`,
    );
  });
});
