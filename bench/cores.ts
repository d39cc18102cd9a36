import { rmSync } from 'node:fs';
import { note, type Row } from './lib/report.ts';
import { drive } from './lib/requests.ts';
import type { Rig } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** Ingest of a server that may use one processor, with every thread of it, beside one that may use all. */

export interface CoresPlan {
  readonly pairs: number;
  readonly warmUp: number;
  readonly count: number;
}

const ONE = ['taskset', '-c', '0'];

/** Bundles a second; the load generator runs where it likes. */
async function rateOf(rig: Rig, plan: CoresPlan, confined: readonly string[]): Promise<number> {
  const data = rig.freshData('cores');
  try {
    const server = await rig.startGpd(data, {}, confined);
    try {
      await rig.load(server.port, 0, plan.warmUp);
      const asked = { file: rig.wire, skip: plan.warmUp, count: plan.count, status: 200 };
      return plan.count / (await drive(server.port, asked)).seconds;
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(data, { recursive: true });
  }
}

export async function benchCores(rig: Rig, plan: CoresPlan): Promise<Row[]> {
  const [one, all]: [number[], number[]] = [[], []];
  for (let pair = 1; pair <= plan.pairs; pair += 1) {
    one.push(await rateOf(rig, plan, ONE));
    all.push(await rateOf(rig, plan, []));
    const rates = `${one.at(-1)?.toFixed(0)} and ${all.at(-1)?.toFixed(0)} bundles a second`;
    note(`cores pair ${pair} of ${plan.pairs}: ${rates}`);
  }
  return [
    {
      name: 'cores ingest rate',
      value: pairedRatio(all, one),
      unit: 'x one processor',
      goal: { atLeast: 1.6 },
      details: { one: median(one), all: median(all) },
    },
  ];
}
