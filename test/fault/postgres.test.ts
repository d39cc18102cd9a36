import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { missingPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import type { GpdProcess } from '../support/process.ts';
import { sized } from '../support/sized.ts';
import { describeWithTool } from '../support/tools.ts';
import { createHouse, type House, type Rows } from './support/house.ts';
import { judge, judgeTables } from './support/judge.ts';
import { killUnderLoad } from './support/kill.ts';
import { newBook, refusalsOf, runLoad, visit } from './support/load.ts';

/** An installation on a PostgreSQL of its own that syncs what it commits. */
interface PostgresHouse {
  readonly house: House;
  readonly postgres: PostgresServer;
  stop(): Promise<void>;
}

async function createPostgresHouse(): Promise<PostgresHouse> {
  const postgres = await startPostgres({ durable: true });
  const connectionString = await postgres.freshUrl();
  const sql = async (statement: string): Promise<Rows> => {
    const client = new pg.Client({ connectionString });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(statement)).rows;
    } finally {
      await client.end();
    }
  };
  const house = await createHouse({ settings: { GPD_DATABASE_URL: connectionString }, sql });
  return {
    house,
    postgres,
    async stop() {
      await house.stop();
      await postgres.stop();
    },
  };
}

const ROUNDS = sized('FAULT', 2, 25);
const KILLS = sized('FAULT', 4, 60);
const RECOVERED_MS = 60_000;

let place: PostgresHouse;
let house: House;
let gpd: GpdProcess;

async function untilServed(): Promise<void> {
  const startedAt = performance.now();
  while (performance.now() - startedAt < RECOVERED_MS) {
    if ((await visit(house, newBook())) !== null) return;
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

async function throughFault(fault: Fault): Promise<void> {
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
  await untilServed();
  await sleep(100);
  over = true;
  await load;
  expect(refusalsOf(book)).toEqual({});
  expect(book.unanswered).toBe(0);
  await judge(house, book);
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
      for (let round = 0; round < ROUNDS; round += 1) await throughFault(fault);
      await judgeTables(house);
      await house.verify();
    });
  }

  it('hung for longer than anybody waits: every answer is a 503, and no check allows', {
    timeout: 240_000,
  }, async () => {
    const book = newBook();
    const granted = { principalId: 'granted-before', purposes: ['device-identification'] };
    expect((await house.post('/v1/consent/grant', granted)).status).toBe(201);
    await signals.hang();
    const check = { principalId: granted.principalId, purpose: 'device-identification' };
    const requests = [
      ...Array.from({ length: 5 }, () => house.post('/v1/consent/can-process', check)),
      house.post('/v1/consent/withdraw', granted),
      house.get('/v1/decisions/req_01ARZ3NDEKTSV4RRFFQ69G5FAV'),
    ];
    const replies = await Promise.all([...requests, visit(house, book).then(() => book.refusals[0])]);
    await signals.wake();
    expect(replies.map((reply) => reply?.status)).toEqual(replies.map(() => 503));
    for (const reply of replies) expect(reply?.headers['retry-after']).toMatch(/^\d+$/);
    await untilServed();
    await judgeTables(house);
  });

  it('kill -9 of the server on PostgreSQL loses nothing', { timeout: ROUNDS * 120_000 }, async () => {
    for (let round = 0; round < KILLS; round += 1) {
      const book = await killUnderLoad(house, gpd, round);
      gpd = await house.start();
      await judge(house, book);
      await judgeTables(house);
    }
    await house.verify();
  });
});
