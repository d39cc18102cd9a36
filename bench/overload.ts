import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_UNDER_WAY } from '../src/http/limiter.ts';
import { settleDisk } from './lib/disk.ts';
import { memory } from './lib/proc.ts';
import { note, type Row } from './lib/report.ts';
import { drive, load } from './lib/requests.ts';
import type { Rig, Running } from './lib/rig.ts';
import { LOADED } from './lib/subjects.ts';

/** Three times as many bundles as the server can take, for a while, in an open loop: what it says, and what it costs. */

export interface OverloadPlan {
  readonly warmUp: number;
  /** Bundles that measure the capacity. */
  readonly count: number;
  readonly seconds: number;
  /** Bundles that are there for all of it. */
  readonly bundles: number;
}

const TIMES = 3;
/** Twice as many as a lane works on at once: the server must refuse, and not only be asked less. */
const CONNECTIONS = 2 * MAX_UNDER_WAY;
const LOOK_MS = 100;

/** Looks at the resident set until told to stop. */
function watchMemory(pid: number): { readonly stop: () => readonly number[] } {
  const seen: number[] = [];
  let over = false;
  void (async () => {
    while (!over) {
      seen.push(memory(pid)?.rssMb ?? Number.NaN);
      await sleep(LOOK_MS);
    }
  })();
  return {
    stop() {
      over = true;
      return seen;
    },
  };
}

interface Run {
  readonly rate: number;
  readonly calm: number;
  readonly accepted: number;
  readonly refused: number;
  readonly p99: number;
  readonly growth: number;
  readonly calmMb: number;
  readonly peakMb: number;
  readonly after: number;
}

async function overload(rig: Rig, plan: OverloadPlan, server: Running): Promise<Run> {
  const bundles = { file: rig.wire, status: 200 };
  let skip = 0;
  const next = (count: number): { skip: number; count: number } => {
    skip += count;
    return { skip: skip - count, count };
  };
  await drive(server.port, { ...bundles, ...next(plan.warmUp) });
  const rate = plan.count / (await drive(server.port, { ...bundles, ...next(plan.count) })).seconds;
  const part = Math.floor(plan.count / 2);
  const open = { ...bundles, connections: 200, rate: rate * LOADED };
  const calm = (await drive(server.port, { ...open, ...next(part) })).p50;

  const calmMb = memory(server.pid)?.rssMb ?? Number.NaN;
  // What was refused was not taken: it is sent again, so that fewer bundles are needed than requests.
  const left = plan.bundles - skip - part - CONNECTIONS;
  // The server may still grow faster than it was measured.
  const seconds = Math.min(plan.seconds, left / rate / 1.5);
  const count = Math.floor(rate * TIMES * seconds);
  const watch = watchMemory(server.pid);
  const burst = { ...bundles, connections: CONNECTIONS, rate: rate * TIMES, again: 503 };
  const result = await load(server.port, { ...burst, skip, count });
  const seen = watch.stop();
  const { 200: accepted = 0, 503: refused = 0, ...others } = result.statuses;
  if (Object.keys(others).length > 0 || refused === 0)
    throw new Error(`under ${TIMES} times the load the answers were ${JSON.stringify(result.statuses)}`);
  skip = result.read;
  const after = (await drive(server.port, { ...open, ...next(part) })).p50;
  const everySecond = seen.filter((_, i) => i % (1000 / LOOK_MS) === 0);
  note(`overload: resident set by the second: ${everySecond.map((mb) => mb.toFixed(0)).join(' ')} MB`);
  const half = Math.ceil(seen.length / 2);
  const [early, late] = [Math.max(...seen.slice(0, half)), Math.max(...seen.slice(half))];
  return {
    rate,
    calm,
    accepted: accepted / result.seconds,
    refused: refused / result.seconds,
    p99: result.p99,
    growth: late / early,
    calmMb,
    peakMb: Math.max(early, late),
    after,
  };
}

export async function benchOverload(rig: Rig, plan: OverloadPlan): Promise<Row[]> {
  const server = await rig.startGpd(rig.freshData('overload'));
  try {
    settleDisk();
    const run = await overload(rig, plan, server);
    const figures = `${run.accepted.toFixed(0)} taken and ${run.refused.toFixed(0)} refused a second of ${run.rate.toFixed(0)}`;
    note(`overload: ${figures}, p99 ${run.p99.toFixed(0)} ms, peak ${run.peakMb.toFixed(0)} MB`);
    const details = { ...run };
    const row = (name: string, value: number, unit: string, goal: Row['goal']): Row => ({
      name: `overload ${name}`,
      value,
      unit,
      goal,
      details,
    });
    return [
      row('bundles taken', run.accepted / run.rate, 'x capacity', { atLeast: 0.5 }),
      row('RSS, highest of its second half', run.growth, 'x of its first half', { atMost: 1.15 }),
      row('RSS, highest', run.peakMb / run.calmMb, 'x before', null),
      // Little's law says 1 for one queue; there are two: to be read, to be recorded.
      row('p99 of what is taken', run.p99 / 1000 / (MAX_UNDER_WAY / run.accepted), 'x places / rate', {
        atMost: 1.5,
      }),
      row('p50 right after', run.after / run.calm, 'x before', { atMost: 2 }),
    ];
  } finally {
    await server.stop();
  }
}
