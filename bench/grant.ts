import { cpSync } from 'node:fs';
import type { Row } from './lib/report.ts';
import { grantRequest, writeRequests } from './lib/requests.ts';
import type { Rig } from './lib/rig.ts';
import { compare, type MeasurePlan, measureServer, runRounds, type Subject } from './lib/subjects.ts';

/** Measures the cost of a grant next to its floor. Every grant is by a new person, and each run begins with an empty log. */

export interface GrantPlan {
  readonly rounds: number;
  readonly count: number;
}

export async function benchGrant(rig: Rig, { rounds, count }: GrantPlan): Promise<Row[]> {
  const template = rig.freshData('grant');
  const key = await rig.createApiKey(template);
  const open = Math.round(count / 2);
  const file = await writeRequests(`${template}.requests`, 2 * count + open, (i) => grantRequest(key, i));
  const plan: MeasurePlan = { file, status: 201, warmUp: count, count, open };
  const subjects: Subject[] = [
    {
      name: 'gpd',
      async run() {
        const data = rig.freshPath('grant');
        cpSync(template, data, { recursive: true });
        return measureServer(await rig.startGpd(data), plan);
      },
    },
    {
      name: 'floor',
      run: async () => measureServer(await rig.startFloor('grant.mjs', rig.freshPath('grant.db')), plan),
    },
  ];
  const results = await runRounds('grant', subjects, rounds);
  return [
    compare({ name: 'grant CPU', pair: ['gpd', 'floor'], unit: 'x floor', goal: { atMost: 2.5 } }, results),
  ];
}
