import { settleDisk } from './lib/disk.ts';
import { threadSeconds } from './lib/proc.ts';
import { note, type Row } from './lib/report.ts';
import { drive } from './lib/requests.ts';
import type { Rig } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** Ingest of a server that may use one processor, with every thread of it, beside one that may use all. */

export interface CoresPlan {
  readonly pairs: number;
  readonly warmUp: number;
  readonly count: number;
  /** As many as keep the processors busy while bundles wait for the disk. */
  readonly connections: number;
}

const ONE = ['taskset', '-c', '0'];

interface Run {
  /** Bundles a second. */
  readonly rate: number;
  /** Microseconds of CPU for a bundle. */
  readonly mainMicros: number;
  readonly allMicros: number;
}

/** The load generator runs where it likes. */
async function measure(rig: Rig, plan: CoresPlan, confined: readonly string[]): Promise<Run> {
  const { warmUp, count, connections } = plan;
  const bundles = { file: rig.wire, connections, status: 200 };
  const server = await rig.startGpd(rig.freshData('cores'), {}, confined);
  try {
    settleDisk();
    await drive(server.port, { ...bundles, skip: 0, count: warmUp });
    const before = threadSeconds(server.pid);
    const { seconds } = await drive(server.port, { ...bundles, skip: warmUp, count });
    const used = [...threadSeconds(server.pid)].map(([id, cpu]) => ({
      id,
      cpu: cpu - (before.get(id) ?? 0),
    }));
    const micros = (threads: typeof used): number =>
      (threads.reduce((sum, { cpu }) => sum + cpu, 0) / count) * 1e6;
    const main = used.filter(({ id }) => id === server.pid);
    return { rate: count / seconds, mainMicros: micros(main), allMicros: micros(used) };
  } finally {
    await server.stop();
  }
}

export async function benchCores(rig: Rig, plan: CoresPlan): Promise<Row[]> {
  const [one, all]: [Run[], Run[]] = [[], []];
  for (let pair = 1; pair <= plan.pairs; pair += 1) {
    const [confined, free] = [await measure(rig, plan, ONE), await measure(rig, plan, [])];
    one.push(confined);
    all.push(free);
    const rates = `${confined.rate.toFixed(0)} and ${free.rate.toFixed(0)} bundles a second`;
    const cpu = `${free.mainMicros.toFixed(0)} of ${free.allMicros.toFixed(0)} µs on the main thread`;
    note(`cores pair ${pair} of ${plan.pairs}: ${rates}; ${cpu}`);
  }
  const rateOf = (runs: readonly Run[]): number[] => runs.map(({ rate }) => rate);
  const main = median(all.map(({ mainMicros }) => mainMicros));
  const details = { one: median(rateOf(one)), all: median(rateOf(all)), mainMicros: main };
  return [
    {
      name: 'cores ingest rate',
      value: pairedRatio(rateOf(all), rateOf(one)),
      unit: 'x one processor',
      goal: { atLeast: 1.6 },
      details,
    },
    {
      // Its inverse is what more processors can give while one thread runs the JavaScript.
      name: 'cores CPU of the main thread',
      value: median(all.map(({ mainMicros, allMicros }) => mainMicros / allMicros)),
      unit: 'of all',
      goal: null,
      details,
    },
  ];
}
