import { rmSync } from 'node:fs';
import { memory } from './lib/proc.ts';
import type { Row } from './lib/report.ts';
import type { Rig } from './lib/rig.ts';

/** Measures the resident set of the server after it has accepted `count` bundles. */
export async function benchMemory(rig: Rig, count: number): Promise<Row[]> {
  const data = rig.freshData('memory');
  const server = await rig.startGpd(data);
  try {
    const idle = memory(server.pid);
    await rig.load(server.port, 0, count);
    const after = memory(server.pid);
    if (!idle || !after) throw new Error('the server ended under load');
    const details = { bundles: count, idleMb: idle.rssMb };
    return [
      { name: 'memory RSS', value: after.rssMb, unit: 'MB', goal: { atMost: 200 }, details },
      { name: 'memory peak RSS', value: after.peakMb, unit: 'MB', goal: { atMost: 200 }, details },
    ];
  } finally {
    await server.stop();
    rmSync(data, { recursive: true });
  }
}
