import { createHmac, randomBytes } from 'node:crypto';
import { cpSync, rmSync } from 'node:fs';
import { macFits, makeStateMac } from '../src/tenants/state-mac.ts';
import { addPrincipals, PURPOSE, principalId } from './lib/principals.ts';
import { note, type Row } from './lib/report.ts';
import { drive, type JsonRequest, writeRequests } from './lib/requests.ts';
import type { Rig, Running } from './lib/rig.ts';
import { median, pairedRatio, seededRandom } from './lib/stats.ts';
import {
  type Asked,
  type Comparison,
  compare,
  measureServer,
  runRounds,
  type Subject,
  tailRow,
} from './lib/subjects.ts';
import { type ConsentPlan, makePeerSubjects } from './peers/subjects.ts';

/** What a consent decision costs, how flat that stays, and what a grant costs: beside floors, Express and, asked for, peers. */

const PROBES = 200;

const startGpd = (rig: Rig, data: string): Promise<Running> =>
  rig.startGpd(data, { GPD_RATE_CONSENT: 'off' });

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
  return {
    people,
    data,
    file: await writeRequests(`${data}.requests`, plan.warmUp + plan.count + plan.open, make),
  };
}

const asked = ({ warmUp, count, open }: ConsentPlan, file: string): Asked => ({
  file,
  status: 200,
  warmUp,
  count,
  open,
});

function decisions(rig: Rig, plan: ConsentPlan, { people, data, file }: Population): Subject {
  return {
    name: `gpd ${people}`,
    run: async () => measureServer(await startGpd(rig, data), asked(plan, file)),
  };
}

async function answerBytes(server: Running, file: string): Promise<number> {
  try {
    return (await drive(server.port, { file, skip: 0, count: PROBES, status: 200 })).bodyBytes;
  } finally {
    await server.stop();
  }
}

async function others(rig: Rig, plan: ConsentPlan, { data, file }: Population): Promise<Subject[]> {
  const bytes = Math.round(await answerBytes(await startGpd(rig, data), file));
  const subject = (name: string, program: string, ...args: string[]): Subject => ({
    name,
    run: async () => measureServer(await rig.startOther(program, ...args, bytes), asked(plan, file)),
  });
  return [subject('floor', 'floor/consent.mjs'), subject('Express', 'peers/express.mjs', 'consent')];
}

/** Every grant is a new person's; each run begins with an empty log. */
async function grants(rig: Rig, plan: ConsentPlan): Promise<Subject[]> {
  const template = rig.freshData('consent-grants');
  const headers = { Authorization: `Bearer ${await addPrincipals(template, rig.kid, 0)}` };
  const { grants: count } = plan;
  const open = Math.round(count / 2);
  const file = await writeRequests(`${template}.requests`, 2 * count + open, (i) => ({
    path: '/v1/consent/grant',
    headers,
    body: { principalId: principalId(i), purposes: [PURPOSE] },
  }));
  const granting: Asked = { file, status: 201, warmUp: count, count, open };
  return [
    {
      name: 'gpd grants',
      async run() {
        const data = rig.freshPath('grants');
        cpSync(template, data, { recursive: true });
        return measureServer(await startGpd(rig, data), granting);
      },
    },
    {
      name: 'floor grants',
      run: async () =>
        measureServer(await rig.startOther('floor/grant.mjs', rig.freshPath('grants.db')), granting),
    },
  ];
}

function comparisons(plan: ConsentPlan): Comparison[] {
  const [small = 0, ...larger] = plan.populations;
  const ours = `gpd ${small}`;
  const format = (people: number): string => people.toLocaleString('en');
  const decision = 'consent CPU per decision';
  return [
    { name: decision, pair: [ours, 'floor'], unit: 'x floor', goal: { atMost: 3 } },
    { name: decision, pair: [ours, 'Express'], unit: 'x Express', goal: null },
    { name: decision, pair: [ours, 'c15t'], unit: 'x c15t', goal: { atMost: 1 / 8 } },
    { name: decision, pair: [ours, 'cerbos'], unit: 'x cerbos', goal: { atMost: 1 / 4 } },
    ...larger.map((people) => ({
      name: `consent CPU at ${format(people)} principals`,
      pair: [`gpd ${people}`, ours] as const,
      unit: `x at ${format(small)}`,
      goal: { atMost: 1.15 },
    })),
    { name: 'grant CPU per grant', pair: ['gpd grants', 'floor grants'], unit: 'x floor', goal: null },
    { name: 'grant CPU per grant', pair: ['gpd grants', 'c15t grants'], unit: 'x c15t', goal: null },
  ];
}

const MAC_ROUNDS = 9;
const MACS = 20_000;

function microsOf(work: (i: number) => boolean): number {
  const before = process.cpuUsage();
  let fits = true;
  for (let i = 0; i < MACS; i += 1) fits = work(i) && fits;
  const { user, system } = process.cpuUsage(before);
  if (!fits) throw new Error('a MAC does not fit');
  return (user + system) / MACS;
}

/** What a check computes that it would not without ADR 0042: the MACs of its two rows. The first round warms up. */
function macCost(kid: string): Row {
  const key = randomBytes(32);
  const mac = makeStateMac(kid, key);
  const row = {
    choice: 'granted',
    policyVersion: 1,
    expiresAt: null,
    at: 1_800_000_000_000,
    seq: 7,
  } as const;
  const state = { ...row, hash: 'ab'.repeat(32), overGpc: false, given: 'person', doubtSeq: null } as const;
  const person = { gpc: false, except: null, erasedAt: null };
  const names = Array.from({ length: 1000 }, () => randomBytes(16).toString('hex'));
  const nameOf = (i: number): string => names[i % names.length] ?? '';
  const stored = names.map((name) => [mac.ofPrincipal(name, person), mac.ofState(name, PURPOSE, state)]);
  const [ours, bare]: [number[], number[]] = [[], []];
  for (let round = 0; round <= MAC_ROUNDS; round += 1) {
    const micros = microsOf((i) => {
      const [whose, what] = stored[i % names.length] ?? [];
      const name = nameOf(i);
      return (
        macFits(whose, mac.ofPrincipal(name, person)) && macFits(what, mac.ofState(name, PURPOSE, state))
      );
    });
    const floor = microsOf((i) => createHmac('sha256', key).update(nameOf(i)).digest().length === 32);
    if (round === 0) continue;
    ours.push(micros);
    bare.push(floor);
  }
  return {
    name: 'consent MACs of a check',
    value: median(ours),
    unit: 'µs',
    goal: { atMost: 5 },
    details: { micros: ours, bare, timesBare: pairedRatio(ours, bare) },
  };
}

/** A second of a grant in the words of the goal: time for one, and not CPU. */
function grantTime(row: Row): Row {
  const { rate = Number.NaN } = row.beside ?? {};
  const ran = !Number.isNaN(rate);
  return {
    name: 'grant time per grant',
    value: 1 / rate,
    unit: ran ? 'x c15t' : row.unit,
    goal: ran ? { atMost: 1 } : null,
    details: row.details,
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
    ...(await others(rig, plan, first)),
    ...(await grants(rig, plan)),
    ...peers.subjects,
  ];
  const results = await runRounds('consent', subjects, plan.rounds);
  for (const { data } of populations) rmSync(data, { recursive: true });
  const rows = comparisons(plan).map((comparison) => compare(comparison, results, peers.missing));
  const toC15t = rows.filter(({ name }) => name.startsWith('grant')).slice(-1);
  return [
    ...rows,
    ...toC15t.map(grantTime),
    macCost(rig.kid),
    tailRow('consent', results.get(`gpd ${plan.populations[0]}`) ?? []),
  ];
}
