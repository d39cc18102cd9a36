import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startNode } from './lib/child.ts';
import { addPrincipals, PURPOSE, principalId } from './lib/principals.ts';
import { note, type Row } from './lib/report.ts';
import { drive, type JsonRequest, type Measured, measureServer, writeRequests } from './lib/requests.ts';
import { type Rig, type Running, running } from './lib/rig.ts';
import { median, pairedRatio, seededRandom } from './lib/stats.ts';
import { type ConsentPlan, makePeerSubjects, type Subject } from './peers/subjects.ts';

/** What a consent decision costs, how flat that stays, and what a grant costs: beside a floor and, asked for, peers. */

const FLOOR = join(fileURLToPath(new URL('floor', import.meta.url)), 'consent.mjs');
const PROBES = 200;

function startGpd(rig: Rig, data: string): Promise<Running> {
  const env = { ...rig.environment(data), GPD_RATE_CONSENT: 'off' };
  return running(startNode(rig.gpdArgs('serve', '--port', '0', '--json'), { cwd: rig.directory, env }));
}

interface Population {
  readonly people: number;
  readonly data: string;
  /** Decisions about people drawn at random, more than a run needs. */
  readonly file: string;
}

async function makePopulation(rig: Rig, plan: ConsentPlan, people: number): Promise<Population> {
  const data = rig.freshData(`consent-${people}`);
  note(`consent: writing ${people} principals`);
  const headers = { Authorization: `Bearer ${await addPrincipals(data, rig.kid, people)}` };
  const random = seededRandom(plan.seed);
  const make = (): JsonRequest => ({
    path: '/v1/consent/can-process',
    headers,
    body: { principalId: principalId(Math.floor(random() * people)), purpose: PURPOSE },
  });
  return { people, data, file: await writeRequests(`${data}.requests`, plan.warmUp + plan.count, make) };
}

function decisions(rig: Rig, plan: ConsentPlan, { people, data, file }: Population): Subject {
  const { warmUp, count } = plan;
  return {
    name: `gpd ${people}`,
    run: async () => measureServer(await startGpd(rig, data), { file, count, status: 200 }, warmUp),
  };
}

async function answerBytes(server: Running, file: string): Promise<number> {
  try {
    return (await drive(server.port, { file, skip: 0, count: PROBES, status: 200 })).bodyBytes;
  } finally {
    await server.stop();
  }
}

async function floor(rig: Rig, plan: ConsentPlan, { data, file }: Population): Promise<Subject> {
  const bodyBytes = await answerBytes(await startGpd(rig, data), file);
  const args = [FLOOR, String(Math.round(bodyBytes))];
  const start = (): Promise<Running> => running(startNode(args, { cwd: rig.directory }));
  const { warmUp, count } = plan;
  return {
    name: 'floor',
    run: async () => measureServer(await start(), { file, count, status: 200 }, warmUp),
  };
}

/** Every grant is a new person's; each run begins with an empty log. */
async function grants(rig: Rig, plan: ConsentPlan): Promise<Subject> {
  const template = rig.freshData('consent-grants');
  const headers = { Authorization: `Bearer ${await addPrincipals(template, rig.kid, 0)}` };
  const { grants: count } = plan;
  const file = await writeRequests(`${template}.requests`, 2 * count, (i) => ({
    path: '/v1/consent/grant',
    headers,
    body: { principalId: principalId(i), purposes: [PURPOSE] },
  }));
  return {
    name: 'gpd grants',
    async run() {
      const data = `${template}-run`;
      cpSync(template, data, { recursive: true });
      try {
        return await measureServer(await startGpd(rig, data), { file, count, status: 201 }, count);
      } finally {
        rmSync(data, { recursive: true });
      }
    },
  };
}

function secondsEach({ seconds, statuses }: Measured): number {
  return seconds / Object.values(statuses).reduce((sum, count) => sum + count, 0);
}

/** All subjects turn by turn: what slows the machine down slows all of a round. */
async function runRounds(subjects: readonly Subject[], rounds: number): Promise<Map<string, Measured[]>> {
  const results = new Map<string, Measured[]>(subjects.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const { name, run } of subjects) {
      const result = await run();
      results.get(name)?.push(result);
      const rate = (1 / secondsEach(result)).toFixed(0);
      note(`consent round ${round}, ${name}: ${result.cpuMicros.toFixed(0)} µs CPU, ${rate} a second`);
    }
  }
  return results;
}

interface Comparison {
  readonly name: string;
  readonly of: (run: Measured) => number;
  readonly pair: readonly [string, string];
  readonly unit: string;
  readonly goal: number | null;
}

const cpu = (run: Measured): number => run.cpuMicros;

function comparisons(plan: ConsentPlan): Comparison[] {
  const [small = 0, ...larger] = plan.populations;
  const ours = `gpd ${small}`;
  const format = (people: number): string => people.toLocaleString('en');
  return [
    { name: 'CPU per decision', of: cpu, pair: [ours, 'floor'], unit: 'x floor', goal: 3 },
    ...larger.map((people) => ({
      name: `CPU at ${format(people)} principals`,
      of: cpu,
      pair: [`gpd ${people}`, ours] as const,
      unit: `x at ${format(small)}`,
      goal: 1.15,
    })),
    { name: 'p99', of: (run) => run.p99, pair: [ours, 'floor'], unit: 'x floor', goal: null },
    { name: 'CPU to c15t', of: cpu, pair: [ours, 'c15t'], unit: 'x c15t', goal: 1 / 8 },
    { name: 'CPU to cerbos', of: cpu, pair: [ours, 'cerbos'], unit: 'x cerbos', goal: 1 / 4 },
    {
      name: 'time per grant to c15t',
      of: secondsEach,
      pair: ['gpd grants', 'c15t grants'],
      unit: 'x c15t',
      goal: 1,
    },
  ];
}

function toRow(
  { name, of, pair, unit, goal }: Comparison,
  results: ReadonlyMap<string, readonly Measured[]>,
  missing: ReadonlyMap<string, string>,
): Row {
  const [tops, bottoms] = pair.map((subject) => results.get(subject)?.map(of));
  if (!tops || !bottoms) {
    const why = missing.get(pair[1]) ?? 'no measurement';
    return { name: `consent ${name}`, value: Number.NaN, unit: why, goal: null, details: {} };
  }
  return {
    name: `consent ${name}`,
    value: pairedRatio(tops, bottoms),
    unit,
    goal: goal === null ? null : { atMost: goal },
    details: {
      ours: median(tops),
      other: median(bottoms),
      ratios: tops.map((top, i) => top / (bottoms[i] ?? 0)),
    },
  };
}

export async function benchConsent(rig: Rig, plan: ConsentPlan): Promise<Row[]> {
  const populations: Population[] = [];
  for (const people of plan.populations) populations.push(await makePopulation(rig, plan, people));
  const [first] = populations;
  if (!first) throw new Error('a plan without people');
  const peers = await makePeerSubjects(rig, plan);
  const subjects = [
    ...populations.map((population) => decisions(rig, plan, population)),
    await floor(rig, plan, first),
    await grants(rig, plan),
    ...peers.subjects,
  ];
  const results = await runRounds(subjects, plan.rounds);
  for (const { data } of populations) rmSync(data, { recursive: true });
  const granted = results.get('gpd grants') ?? [];
  return [
    ...comparisons(plan).map((comparison) => toRow(comparison, results, peers.missing)),
    {
      name: 'consent grants',
      value: median(granted.map((run) => 1 / secondsEach(run))),
      unit: 'a second',
      goal: null,
      details: { cpuMicros: median(granted.map(cpu)), p99: median(granted.map((run) => run.p99)) },
    },
  ];
}
