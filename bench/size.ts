import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fillTables } from './lib/fill.ts';
import { cpuSeconds } from './lib/proc.ts';
import { note, type Row } from './lib/report.ts';
import type { Rig } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** Compares ingest on tables of ten million rows with ingest on empty ones. */

export interface SizePlan {
  readonly rows: number;
  readonly pairs: number;
  readonly warmUp: number;
  readonly count: number;
}

async function cpuPerBundle(rig: Rig, plan: SizePlan, data: string, skip: number): Promise<number> {
  const server = await rig.startGpd(data);
  try {
    await rig.load(server.port, skip, plan.warmUp);
    const before = cpuSeconds(server.pid);
    await rig.load(server.port, skip + plan.warmUp, plan.count);
    return ((cpuSeconds(server.pid) - before) / plan.count) * 1e6;
  } finally {
    await server.stop();
  }
}

export async function benchSize(rig: Rig, plan: SizePlan): Promise<Row[]> {
  const full = rig.freshData('size-full');
  note(`size: writing ${plan.rows.toLocaleString('en')} rows of each`);
  await fillTables(join(full, 'gpd.db'), rig.kid, plan.rows);
  const [tops, bottoms]: [number[], number[]] = [[], []];
  for (let pair = 0; pair < plan.pairs; pair += 1) {
    // Each round needs new bundles, because gpd accepts a bundle only once.
    const skip = pair * (plan.warmUp + plan.count);
    const empty = rig.freshData('size-empty');
    bottoms.push(await cpuPerBundle(rig, plan, empty, skip));
    rmSync(empty, { recursive: true });
    tops.push(await cpuPerBundle(rig, plan, full, skip));
    const [top = 0, bottom = 0] = [tops.at(-1), bottoms.at(-1)];
    note(`size pair ${pair + 1} of ${plan.pairs}: ${top.toFixed(0)} and ${bottom.toFixed(0)} µs a bundle`);
  }
  rmSync(full, { recursive: true });
  return [
    {
      name: `ingest CPU at ${plan.rows.toLocaleString('en')} devices`,
      value: pairedRatio(tops, bottoms),
      unit: 'x empty',
      goal: { atMost: 1.2 },
      details: { full: median(tops), empty: median(bottoms) },
    },
  ];
}
