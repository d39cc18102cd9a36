import type { Row } from './lib/report.ts';
import { writeRequests } from './lib/requests.ts';
import { ORIGIN, type Rig } from './lib/rig.ts';
import { compare, measureServer, runRounds, type Subject, tailRow } from './lib/subjects.ts';

/** Measures a check at the door without a signature, which most visitors cause, next to gpd's handler without work. */

export interface DoorPlan {
  readonly rounds: number;
  readonly warmUp: number;
  readonly count: number;
  /** Requests of the open loop. */
  readonly open: number;
}

export async function benchDoor(rig: Rig, { rounds, ...plan }: DoorPlan): Promise<Row[]> {
  const data = rig.freshData('door');
  const total = plan.warmUp + plan.count + plan.open;
  const planOf = async (path: string, status: number) => {
    const request = { path, headers: { Host: new URL(ORIGIN).host } };
    return { ...plan, status, file: await writeRequests(`${data}.${status}`, total, () => request) };
  };
  const [check, health] = [await planOf('/v1/agents/check', 204), await planOf('/healthz', 200)];
  const subjects: Subject[] = [
    { name: 'gpd', run: async () => measureServer(await rig.startGpd(data), check) },
    { name: 'bare', run: async () => measureServer(await rig.startGpd(data), health) },
    { name: 'floor', run: async () => measureServer(await rig.startFloor('door.mjs'), check) },
  ];
  const results = await runRounds('door', subjects, rounds);
  const comparisons = [
    { name: 'door CPU', pair: ['gpd', 'bare'], unit: 'x bare', goal: { atMost: 1.5 } },
    { name: 'door CPU to node:http', pair: ['gpd', 'floor'], unit: 'x floor', goal: null },
  ] as const;
  return [...comparisons.map((one) => compare(one, results)), tailRow('door', results.get('gpd') ?? [])];
}
