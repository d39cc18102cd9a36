import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../src/storage/db.ts';
import { cpuSeconds } from './lib/proc.ts';
import { note, type Row } from './lib/report.ts';
import type { LoadResult, Rig, Running } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** CPU per accepted bundle of gpd against the floor: the same requests in the same run, turn by turn. */

export interface IngestPlan {
  readonly pairs: number;
  readonly warmUp: number;
  readonly count: number;
}

interface Measured extends LoadResult {
  /** Microseconds of CPU for one accepted bundle, all threads. */
  readonly cpuMicros: number;
}

const PROBES = 100;

interface Sizes {
  readonly answer: number;
  readonly verdict: number;
}

async function measure(rig: Rig, plan: IngestPlan, server: Running): Promise<Measured> {
  try {
    await rig.load(server.port, 0, plan.warmUp);
    const before = cpuSeconds(server.pid);
    const result = await rig.load(server.port, plan.warmUp, plan.count);
    return { ...result, cpuMicros: ((cpuSeconds(server.pid) - before) / plan.count) * 1e6 };
  } finally {
    await server.stop();
  }
}

async function probeAnswer(rig: Rig, data: string): Promise<number> {
  const server = await rig.startGpd(data);
  try {
    return (await rig.load(server.port, 0, PROBES)).bodyBytes;
  } finally {
    await server.stop();
  }
}

/** How long gpd's answers and stored verdicts are today: the floor moves as many bytes. */
async function probeSizes(rig: Rig): Promise<Sizes> {
  const data = rig.freshData('probe');
  const answer = await probeAnswer(rig, data);
  const database = await openDatabase({ location: join(data, 'gpd.db') });
  try {
    const rows = await database.read('decisions').avg<{ bytes: number }[]>({
      bytes: database.read.raw('length(verdict)'),
    });
    return { answer: Math.round(answer), verdict: Math.round(rows[0]?.bytes ?? 0) };
  } finally {
    await database.close();
  }
}

export async function runGpd(
  rig: Rig,
  plan: IngestPlan,
  settings: Readonly<Record<string, string>> = {},
): Promise<Measured> {
  const data = rig.freshData('ingest');
  try {
    return await measure(rig, plan, await rig.startGpd(data, settings));
  } finally {
    rmSync(data, { recursive: true });
  }
}

async function runFloor(rig: Rig, plan: IngestPlan, sizes: Sizes): Promise<Measured> {
  const file = join(rig.directory, 'floor.db');
  try {
    const server = await rig.startFloor(file, rig.kid, rig.keyFile, sizes.answer, sizes.verdict);
    return await measure(rig, plan, server);
  } finally {
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
  }
}

export async function benchIngest(rig: Rig, plan: IngestPlan): Promise<Row[]> {
  const sizes = await probeSizes(rig);
  const gpd: Measured[] = [];
  const floor: Measured[] = [];
  for (let pair = 1; pair <= plan.pairs; pair += 1) {
    const ours = await runGpd(rig, plan);
    const least = await runFloor(rig, plan, sizes);
    gpd.push(ours);
    floor.push(least);
    const ratio = (ours.cpuMicros / least.cpuMicros).toFixed(2);
    const cpu = `${ours.cpuMicros.toFixed(0)} and ${least.cpuMicros.toFixed(0)} µs`;
    note(`ingest pair ${pair} of ${plan.pairs}: CPU per bundle ${cpu}, ratio ${ratio}`);
  }
  const compare = (name: string, of: (run: Measured) => number, goal: number | null): Row => {
    const [tops, bottoms] = [gpd.map(of), floor.map(of)];
    return {
      name: `ingest ${name}`,
      value: pairedRatio(tops, bottoms),
      unit: 'x floor',
      goal: goal === null ? null : { atMost: goal },
      details: {
        gpd: median(tops),
        floor: median(bottoms),
        ratios: tops.map((top, i) => top / (bottoms[i] ?? 0)),
      },
    };
  };
  return [
    compare('CPU per bundle', (run) => run.cpuMicros, 1.6),
    compare('bundles per second', (run) => plan.count / run.seconds, null),
    compare('p50', (run) => run.p50, null),
    compare('p99', (run) => run.p99, null),
  ];
}
