import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it, vi } from 'vitest';
import type { IngestResponse } from '../../src/schema/responses.ts';
import { readCheckpoint, readExport } from '../consent/app/support/naive-log.ts';
import { tempDir } from '../support/command.ts';
import { expectCore } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';
import type { Gpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';
import { createFakeClock, type FakeClock, missingFaketime } from './support/faketime.ts';
import { createHouse, type House } from './support/house.ts';
import { type Book, newBook, PURPOSE, runLoad, send } from './support/load.ts';
import { tell } from './support/size.ts';

const HOUR = 3600;
const YEAR = 365 * 24 * HOUR;
const MINUTE_MS = 60_000;
const LIMIT_MS = 300_000;
/** A sweep a minute forgets what is over; on a slow machine it takes its time. */
const SWEPT = { timeout: 120_000, interval: 500 } as const;
const REST_OF_SWEEP_MS = 3000;
const LOAD_MS = 1200;

let replayCount = 0;
const ids = new Set<string>();

interface Place {
  readonly house: House;
  readonly clock: FakeClock;
  gpd: Gpd;
}

async function createPlace(): Promise<Place> {
  const house = await createHouse();
  const clock = createFakeClock(tempDir('clock'));
  return { house, clock, gpd: await house.start(clock.environment) };
}

async function leave({ house, gpd }: Place): Promise<void> {
  await gpd.stop();
  await house.stop();
}

/** A bundle of a browser whose clock is `seconds` off the true time. */
async function visitAt(house: House, seconds: number, reason: 'ok' | 'stale'): Promise<IngestResponse> {
  const bundle = createBundle(house.target, { clientTs: Date.now() + seconds * 1000 });
  const answer = expectCore(await send(house, bundle), reason);
  expect(ids.has(answer.requestId)).toBe(false);
  ids.add(answer.requestId);
  return answer;
}

/** 503 with the reason, where the clock is `seconds` off. */
async function expectRefused(gpd: Gpd, house: House, seconds: number): Promise<void> {
  const bundle = createBundle(house.target, { clientTs: Date.now() + seconds * 1000 });
  expect((await send(house, bundle)).status).toBe(503);
  const ready = await fetch(`${gpd.url}/readyz`);
  expect(ready.status).toBe(503);
  expect(await ready.text()).toMatch(/the clock is behind the newest committed time/);
}

/** A round of housekeeping has committed a time since then. */
const expectCommitted = (house: House, since: number): Promise<void> =>
  vi.waitFor(async () => {
    const [row] = await house.sql("SELECT value FROM meta WHERE name = 'newest-time'");
    expect(Number(row?.['value'] ?? 0)).toBeGreaterThan(since);
  }, SWEPT);

/** gpd refuses each answered bundle again at any time of the clock. */
async function expectNothingTwice(house: House, book: Book): Promise<void> {
  const answered = book.visits.filter(({ answer }) => answer !== null);
  const statuses = await Promise.all(answered.map(async ({ bundle }) => (await send(house, bundle)).status));
  replayCount += statuses.length;
  expect(statuses.filter((status) => ![400, 409, 503].includes(status))).toEqual([]);
}

/** The ledger takes, answers and covers what is written now, whatever the time was before. */
async function expectLedgerSound(house: House, principalId: string): Promise<void> {
  const write = (action: string): Promise<unknown> =>
    house.post(`/v1/consent/${action}`, { principalId, purposes: [PURPOSE] }).then(({ status }) => status);
  const check = async (): Promise<unknown> =>
    (await house.post('/v1/consent/can-process', { principalId, purpose: PURPOSE })).json();
  expect(await write('grant')).toBe(201);
  expect(await check()).toMatchObject({ allowed: true, reason: 'granted' });
  expect(await write('withdraw')).toBe(201);
  expect(await check()).toMatchObject({ allowed: false, reason: 'withdrawn' });
  // A checkpoint is at most a second old (contract section 7).
  await sleep(1100);
  const { size } = readCheckpoint((await house.get('/v1/ledger/checkpoint')).text);
  const lines = readExport(await house.get('/v1/ledger/export'));
  expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, i) => i));
  expect(size).toBe(lines.length);
}

async function openSession(house: House): Promise<string> {
  const reply = await house.post('/v1/sessions', { principalId: 'somebody' });
  expect(reply.status).toBe(201);
  return (reply.json() as { token: string }).token;
}

const sessionStatus = async (house: House, token: string): Promise<number> =>
  (await house.post('/v1/consent/state', { principalId: 'somebody' }, token)).status;

async function count(house: House, table: string): Promise<number> {
  const [row] = await house.sql(`SELECT count(*) AS n FROM ${table}`);
  return Number(row?.['n']);
}

async function load(house: House): Promise<Book> {
  const book = newBook();
  const until = performance.now() + LOAD_MS;
  await runLoad(house, book, () => performance.now() > until, { contesters: 0, erasers: 0 });
  expect(book.refusals).toEqual([]);
  expect(book.unanswered).toBe(0);
  return book;
}

// Beside each other: most of their time they wait for a sweep.
describeWithTool('a clock that jumps', missingFaketime(), () => {
  afterAll(() =>
    tell(
      'clock',
      `jumps of hours and years, with sweeps and a restart between: ${replayCount} bundles sent again, none taken twice; ` +
        `${ids.size} requestIds, each once; every log verified`,
    ),
  );

  it.concurrent('an hour back: no bundle until it is set right, and consent goes on', {
    timeout: LIMIT_MS,
  }, async () => {
    const { house, clock, gpd } = await createPlace();
    const book = await load(house);
    await expectCommitted(house, Date.now() - MINUTE_MS);
    const before = await openSession(house);
    clock.set(-HOUR);
    await expectRefused(gpd, house, -HOUR);
    await expectNothingTwice(house, book);
    await expectLedgerSound(house, 'behind');
    // An hour is more than a session may live, in whichever direction.
    expect(await sessionStatus(house, before)).toBe(401);

    clock.set(0);
    await expectNothingTwice(house, book);
    await visitAt(house, -HOUR, 'stale');
    await visitAt(house, 0, 'ok');
    await expectLedgerSound(house, 'right');
    expect((await fetch(`${gpd.url}/readyz`)).status).toBe(200);
    await house.verify();
    await leave({ house, clock, gpd });
  });

  it.concurrent('two hours ahead for a whole sweep, and at a start: nothing is taken twice', {
    timeout: LIMIT_MS,
  }, async () => {
    const place = await createPlace();
    const { house, clock } = place;
    const book = await load(house);
    await place.gpd.stop();
    clock.set(2 * HOUR);
    place.gpd = await house.start(clock.environment);
    await visitAt(house, 2 * HOUR, 'ok');
    await visitAt(house, 0, 'stale');
    const nonces = await count(house, 'nonces');
    await vi.waitFor(async () => expect(await count(house, 'nonces')).toBeLessThan(nonces), SWEPT);
    await vi.waitFor(async () => expect(await count(house, 'verdict_seals')).toBeGreaterThan(0), SWEPT);

    clock.set(0);
    await expectNothingTwice(house, book);
    // Nobody can say any more what of now was taken: refused until the time has caught up.
    await expectRefused(place.gpd, house, 0);
    await expectLedgerSound(house, 'back');
    await house.verify();
    clock.set(2 * HOUR);
    await visitAt(house, 2 * HOUR, 'ok');
    await house.verify();
    await leave(place);
  });

  it.concurrent('three years ahead for a whole sweep: nothing goes, and nobody is refused afterwards', {
    timeout: LIMIT_MS,
  }, async () => {
    const place = await createPlace();
    const { house, clock } = place;
    const book = await load(house);
    await expectCommitted(house, Date.now() - MINUTE_MS);
    // Goes with the sweep: a session is nothing that anybody would want back.
    await openSession(house);
    const decisions = await count(house, 'decisions');
    await place.gpd.stop();
    clock.set(3 * YEAR);
    place.gpd = await house.start(clock.environment);
    await vi.waitFor(async () => expect(await count(house, 'principal_sessions')).toBe(0), SWEPT);
    await sleep(REST_OF_SWEEP_MS);
    clock.set(0);
    expect(await count(house, 'decisions')).toBe(decisions);
    await expectNothingTwice(house, book);
    await visitAt(house, 0, 'ok');
    await house.verify();
    await leave(place);
  });
});
