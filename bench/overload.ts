import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../src/db/engine.ts';
import { cpuSeconds } from './lib/proc.ts';
import { type Goal, note, type Row } from './lib/report.ts';
import { drive, load } from './lib/requests.ts';
import type { Rig, Running } from './lib/rig.ts';
import { median } from './lib/stats.ts';

/**
 * Measures ingest at three times its capacity, next to its own closed loop. A machine shares its processors between server
 * and load, so that answers a second say little: the row compares answers of 200 per second of the server's CPU.
 */

export interface OverloadPlan {
  readonly rounds: number;
  readonly warmUp: number;
  /** Requests of the closed loop. */
  readonly count: number;
  /** Requests that arrive three times as fast. */
  readonly open: number;
  readonly refusals: number;
}

const TIMES = 3;
/** More than the places of the route, so that it has to refuse. */
const CONNECTIONS = 1500;
const WAITED_MS = 3000;
/** In this time the server spends little once all places are taken: it asks for the writer again and again. */
const IDLE_MS = 300;
const IDLE_SHARE = 0.3;

async function withCpu<T>({ pid }: Running, run: () => Promise<T>): Promise<readonly [T, number]> {
  const before = cpuSeconds(pid);
  const result = await run();
  return [result, cpuSeconds(pid) - before];
}

/** The places of the route, see `createConcurrencyLimit`. */
const PLACES = 1000;

interface Overloaded {
  /** Verdicts per second of CPU, over those of the closed loop. */
  readonly goodput: number;
  readonly refused: number;
  /** The P99 of a verdict, in the time that all places take at the rate of the closed loop. */
  readonly wait: number;
}

async function overload(rig: Rig, server: Running, plan: OverloadPlan): Promise<Overloaded> {
  const { warmUp, count, open } = plan;
  await rig.load(server.port, 0, warmUp);
  const [closed, closedCpu] = await withCpu(server, () => rig.load(server.port, warmUp, count));
  // Another process may have had the processors meanwhile.
  const rate = count / Math.min(closed.seconds, closedCpu);
  const arrivals = { file: rig.bundles, skip: warmUp + count, count: open, rate: TIMES * rate };
  const [result, cpu] = await withCpu(server, () =>
    load(server.port, { ...arrivals, connections: CONNECTIONS, status: 200 }),
  );
  const { 200: served = 0, 503: refused = 0 } = result.statuses;
  if (served + refused !== open) throw new Error(`answers were ${JSON.stringify(result.statuses)}`);
  return { goodput: served / cpu / (count / closedCpu), refused, wait: (result.p99 * rate) / 1000 / PLACES };
}

/**
 * Another connection has the writer of the database, so that {@link PLACES} bundles wait in their places and all others are
 * refused.
 * @returns microseconds of CPU per refusal; NaN on a machine that is too busy for it
 */
async function measureRefusal(rig: Rig, server: Running, data: string, count: number): Promise<number> {
  const requests = { file: rig.bundles, status: 503, skip: 0 };
  const database = await openDatabase({ location: join(data, 'gpd.db') });
  try {
    return await database.transaction(async (tx) => {
      await tx.raw('PRAGMA user_version = 0');
      const waiting = load(server.port, { ...requests, count: PLACES, connections: PLACES });
      let idle = 1;
      while (idle > IDLE_SHARE) idle = (await withCpu(server, () => sleep(IDLE_MS)))[1] / (IDLE_MS / 1000);
      const [{ p99, seconds }, cpu] = await withCpu(server, () => drive(server.port, { ...requests, count }));
      await waiting;
      // The writer was waited for in vain, and each place that got free was taken again.
      return p99 > WAITED_MS ? Number.NaN : ((cpu - idle * seconds) / count) * 1e6;
    });
  } finally {
    await database.close();
  }
}

async function measureGpd(rig: Rig, plan: OverloadPlan) {
  const data = rig.freshData('overload');
  const server = await rig.startGpd(data);
  try {
    const result = await overload(rig, server, plan);
    return { ...result, refusal: await measureRefusal(rig, server, data, plan.refusals) };
  } finally {
    await server.stop();
  }
}

async function measureFloor(rig: Rig, { refusals: count }: OverloadPlan): Promise<number> {
  const server = await rig.startFloor('refuse.mjs');
  try {
    const requests = { file: rig.bundles, status: 503, count, skip: 0 };
    await drive(server.port, requests);
    const [, cpu] = await withCpu(server, () => drive(server.port, requests));
    return (cpu / count) * 1e6;
  } finally {
    await server.stop();
  }
}

export async function benchOverload(rig: Rig, plan: OverloadPlan): Promise<Row[]> {
  const runs: Awaited<ReturnType<typeof measureGpd>>[] = [];
  const floors: number[] = [];
  for (let round = 1; round <= plan.rounds; round += 1) {
    const run = await measureGpd(rig, plan);
    const floor = await measureFloor(rig, plan);
    runs.push(run);
    floors.push(floor);
    const costs = `a refusal ${run.refusal.toFixed(0)} µs, floor ${floor.toFixed(0)} µs`;
    note(`overload round ${round}: goodput ${run.goodput.toFixed(2)}, refused ${run.refused}, ${costs}`);
  }
  const row = (name: string, unit: string, goal: Goal, values: readonly number[]): Row => ({
    name,
    value: median(values),
    unit,
    goal,
    details: { values, refused: runs.map(({ refused }) => refused) },
  });
  return [
    row(
      `verdicts at ${TIMES} x capacity`,
      'x capacity',
      { atLeast: 0.6 },
      runs.map(({ goodput }) => goodput),
    ),
    row(
      'their p99',
      'x places / rate',
      { atMost: 1.5 },
      runs.map(({ wait }) => wait),
    ),
    row(
      'a refusal, CPU',
      'x node:http',
      { atMost: 1.2 },
      runs.map(({ refusal }, i) => refusal / (floors[i] ?? 0)),
    ),
  ];
}
