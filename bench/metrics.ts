import { type IngestPlan, runGpd } from './ingest.ts';
import { note, type Row } from './lib/report.ts';
import type { Rig } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** What counting costs on the hot path: CPU per accepted bundle with GPD_METRICS_LISTEN and without, turn by turn. */

/** Below the range from which the system takes the ports of clients. */
const LISTEN = { GPD_METRICS_LISTEN: '127.0.0.1:19464' };

export async function benchMetrics(rig: Rig, plan: IngestPlan): Promise<Row[]> {
  const [counting, silent]: [number[], number[]] = [[], []];
  for (let pair = 1; pair <= plan.pairs; pair += 1) {
    const order = pair % 2 === 0 ? [true, false] : [false, true];
    for (const on of order) {
      const { cpuMicros } = await runGpd(rig, { ...plan, open: 0 }, on ? LISTEN : {});
      (on ? counting : silent).push(cpuMicros);
    }
    note(
      `metrics pair ${pair} of ${plan.pairs}: ${counting.at(-1)?.toFixed(0)} and ${silent.at(-1)?.toFixed(0)} µs`,
    );
  }
  return [
    {
      name: 'metrics CPU per bundle',
      value: pairedRatio(counting, silent),
      unit: 'x without',
      goal: { atMost: 1.05 },
      details: { with: median(counting), without: median(silent) },
    },
  ];
}
