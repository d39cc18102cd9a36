import { rmSync } from 'node:fs';
import { note, type Row } from './lib/report.ts';
import { drive, grantRequest, PURPOSE, personId, writeRequests } from './lib/requests.ts';
import type { Rig, Running } from './lib/rig.ts';
import { seededRandom } from './lib/stats.ts';
import {
  type Comparison,
  compare,
  type MeasurePlan,
  measureServer,
  runRounds,
  type Subject,
  tailOverFloorRow,
} from './lib/subjects.ts';

/** Measures the cost of a consent check next to its floor, and how flat it stays when many people have a grant. */

export interface CheckPlan {
  readonly rounds: number;
  readonly warmUp: number;
  readonly count: number;
  /** Requests of the open loop. */
  readonly open: number;
  readonly populations: readonly number[];
  readonly seed: number;
}

const PROBES = 200;

interface Population {
  readonly people: number;
  readonly data: string;
  /** Checks of random people, more than a run needs. */
  readonly file: string;
}

/** Records each grant through the API, so that a check reads the same rows as in production. */
async function createPopulation(rig: Rig, plan: CheckPlan, people: number): Promise<Population> {
  const data = rig.freshData(`check-${people}`);
  note(`check: granting for ${people} people`);
  const key = await rig.createApiKey(data);
  const grants = await writeRequests(`${data}.grants`, people, (i) => grantRequest(key, i));
  const server = await rig.startGpd(data);
  try {
    await drive(server.port, { file: grants, skip: 0, count: people, status: 201 });
  } finally {
    await server.stop();
  }
  rmSync(grants);
  const random = seededRandom(plan.seed);
  const file = await writeRequests(`${data}.requests`, plan.warmUp + plan.count + plan.open, () => ({
    path: '/v1/consent/can-process',
    headers: { Authorization: `Bearer ${key}` },
    body: { principalId: personId(Math.floor(random() * people)), purpose: PURPOSE },
  }));
  return { people, data, file };
}

const planOf = ({ warmUp, count, open }: CheckPlan, file: string): MeasurePlan => ({
  file,
  status: 200,
  warmUp,
  count,
  open,
});

async function measureAnswer(server: Running, file: string): Promise<number> {
  try {
    return Math.round((await drive(server.port, { file, skip: 0, count: PROBES, status: 200 })).bodyBytes);
  } finally {
    await server.stop();
  }
}

function comparisons([small = 0, ...larger]: readonly number[]): Comparison[] {
  const ours = `gpd ${small}`;
  const format = (people: number): string => people.toLocaleString('en');
  return [
    { name: 'check CPU', pair: [ours, 'floor'], unit: 'x floor', goal: { atMost: 1.8 } },
    ...larger.map((people) => ({
      name: `check CPU at ${format(people)} people`,
      pair: [`gpd ${people}`, ours] as const,
      unit: `x at ${format(small)}`,
      goal: { atMost: 1.1 },
    })),
  ];
}

export async function benchCheck(rig: Rig, plan: CheckPlan): Promise<Row[]> {
  const populations: Population[] = [];
  for (const people of plan.populations) populations.push(await createPopulation(rig, plan, people));
  const [first] = populations;
  if (!first) throw new Error('a plan without people');
  const bytes = await measureAnswer(await rig.startGpd(first.data), first.file);
  const subjects: Subject[] = [
    ...populations.map(({ people, data, file }) => ({
      name: `gpd ${people}`,
      run: async () => measureServer(await rig.startGpd(data), planOf(plan, file)),
    })),
    {
      name: 'floor',
      run: async () => measureServer(await rig.startFloor('check.mjs', bytes), planOf(plan, first.file)),
    },
  ];
  const results = await runRounds('check', subjects, plan.rounds);
  for (const { data } of populations) rmSync(data, { recursive: true });
  const rows = comparisons(plan.populations).map((comparison) => compare(comparison, results));
  const [ours = [], floor = []] = [`gpd ${first.people}`, 'floor'].map((name) => results.get(name));
  return [...rows, tailOverFloorRow('check', ours, floor)];
}
