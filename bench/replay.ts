import { once } from 'node:events';
import { createReadStream, createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import { type Finished, runNode } from './lib/child.ts';
import { note, type Row } from './lib/report.ts';
import { FLOOR_REPLAY, type Rig } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** `gpd replay FILE`, offline, against a floor that reads, opens and parses the same lines; and its memory. */

export interface ReplayPlan {
  readonly few: number;
  readonly many: number;
  readonly pairs: number;
}

/** Ten times the lines may take so much more memory: the nonces seen and a heap that has warmed up. */
const FLAT = 1.25;

async function head(from: string, to: string, count: number): Promise<void> {
  const out = createWriteStream(to);
  let left = count;
  for await (const line of createInterface({ input: createReadStream(from) })) {
    if (left === 0) break;
    left -= 1;
    if (!out.write(`${line}\n`)) await once(out, 'drain');
  }
  out.end();
  await finished(out);
}

async function replay(rig: Rig, data: string, file: string, count: number): Promise<Finished> {
  const env = rig.environment(data);
  const run = await runNode(rig.gpdArgs('replay', file, '--json'), { cwd: rig.directory, env, watch: true });
  const { byReason } = JSON.parse(run.stdout) as { byReason: Record<string, number> };
  if (byReason['ok'] !== count) throw new Error(`${count} lines gave ${JSON.stringify(byReason)}`);
  return run;
}

export async function benchReplay(rig: Rig, plan: ReplayPlan): Promise<Row[]> {
  const { few, many, pairs } = plan;
  const data = rig.freshData('replay');
  const file = join(rig.directory, 'head.ndjson');
  await head(rig.ndjson, file, few);
  const small = await replay(rig, data, file, few);
  await head(rig.ndjson, file, many);
  const ours: Finished[] = [];
  const floor: Finished[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    ours.push(await replay(rig, data, file, many));
    const args = [FLOOR_REPLAY, file, rig.kid, rig.keyFile];
    floor.push(await runNode(args, { cwd: rig.directory, watch: true }));
  }
  rmSync(file);
  rmSync(data, { recursive: true });
  const cpu = (runs: readonly Finished[]): number[] => runs.map((run) => (run.cpuSeconds / many) * 1e6);
  const rates = ours.map((run) => many / run.wallSeconds);
  const peak = median(ours.map((run) => run.peakMb));
  note(`replay: ${median(rates).toFixed(0)} bundles/s, peak RSS ${small.peakMb.toFixed(0)} MB at ${few}`);
  const cpuDetails = { gpdMicros: median(cpu(ours)), floorMicros: median(cpu(floor)) };
  const memoryDetails = { few, many, fewMb: small.peakMb, manyMb: peak };
  return [
    {
      name: 'replay CPU per bundle',
      value: pairedRatio(cpu(ours), cpu(floor)),
      unit: 'x floor',
      goal: null,
      beside: {
        rate: pairedRatio(
          floor.map((run) => run.wallSeconds),
          ours.map((run) => run.wallSeconds),
        ),
        rss: pairedRatio(
          ours.map((run) => run.peakMb),
          floor.map((run) => run.peakMb),
        ),
      },
      details: cpuDetails,
    },
    {
      name: 'replay rate',
      value: median(rates),
      unit: 'bundles/s',
      goal: null,
      details: { bundles: many, rates },
    },
    { name: 'replay peak RSS', value: peak, unit: 'MB', goal: { atMost: 200 }, details: memoryDetails },
    {
      name: 'replay RSS growth',
      value: peak / small.peakMb,
      unit: `x RSS at ${few}`,
      goal: { atMost: FLAT },
      details: memoryDetails,
    },
  ];
}
