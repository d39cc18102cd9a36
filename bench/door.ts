import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { signExample } from '../src/demo/builder-service.ts';
import { runNode } from './lib/child.ts';
import type { Row } from './lib/report.ts';
import { writeRequests } from './lib/requests.ts';
import { ORIGIN, type Rig } from './lib/rig.ts';
import { median } from './lib/stats.ts';
import { compare, measureServer, type Results, runRounds, type Subject, tailRow } from './lib/subjects.ts';

/**
 * Measures a check at the door without a signature, which most visitors cause, next to gpd's handler without work; and what
 * a signature costs more than Ed25519 itself.
 */

export interface DoorPlan {
  readonly rounds: number;
  readonly warmUp: number;
  readonly count: number;
  /** Requests of the open loop. */
  readonly open: number;
}

/** Lists an agent. @returns the headers of a request that it signed */
async function addAgent(rig: Rig, data: string): Promise<Record<string, string>> {
  const { request, keys } = signExample(Date.now());
  const headers = Object.fromEntries(
    request
      .split('\n')
      .slice(1)
      .map((line) => line.split(': ', 2)),
  );
  const file = `${data}.jwks`;
  writeFileSync(file, keys);
  const args = rig.gpdArgs('agents', 'add', 'https://agent.example', '--jwks', file);
  await runNode(args, { cwd: rig.directory, env: rig.environment(data) });
  return headers as Record<string, string>;
}

const VERIFICATIONS = 5000;

/** Microseconds of CPU that Ed25519 itself takes. */
function measureVerify(): number {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const bytes = Buffer.alloc(300);
  const signature = sign(null, bytes, privateKey);
  const before = process.cpuUsage();
  for (let i = 0; i < VERIFICATIONS; i += 1) verify(null, bytes, publicKey, signature);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / VERIFICATIONS;
}

function signedRow(results: Results, verified: readonly number[]): Row {
  const cpu = (name: string) => (results.get(name) ?? []).map(({ cpuMicros }) => cpuMicros);
  const [signed, unsigned] = [cpu('signed'), cpu('gpd')];
  const values = signed.map((micros, i) => micros - (unsigned[i] ?? 0) - (verified[i] ?? 0));
  return {
    name: 'a signature at the door, CPU',
    value: median(values),
    unit: 'µs more than Ed25519',
    goal: { atMost: 150 },
    details: { values, signed, unsigned, verified },
  };
}

export async function benchDoor(rig: Rig, { rounds, ...plan }: DoorPlan): Promise<Row[]> {
  const data = rig.freshData('door');
  const total = plan.warmUp + plan.count + plan.open;
  const planOf = async (path: string, status: number, signature: Record<string, string> = {}) => {
    const request = { path, headers: { Host: new URL(ORIGIN).host, ...signature } };
    const file = `${data}.${status}.${Object.keys(signature).length}`;
    return { ...plan, status, file: await writeRequests(file, total, () => request) };
  };
  const [check, health] = [await planOf('/v1/agents/check', 204), await planOf('/healthz', 200)];
  const signedCheck = await planOf('/v1/agents/check', 204, await addAgent(rig, data));
  const verified: number[] = [];
  const subjects: Subject[] = [
    { name: 'gpd', run: async () => measureServer(await rig.startGpd(data), check) },
    {
      name: 'signed',
      run: async () => {
        verified.push(measureVerify());
        return measureServer(await rig.startGpd(data), signedCheck);
      },
    },
    { name: 'bare', run: async () => measureServer(await rig.startGpd(data), health) },
    { name: 'floor', run: async () => measureServer(await rig.startFloor('door.mjs'), check) },
  ];
  const results = await runRounds('door', subjects, rounds);
  const comparisons = [
    { name: 'door CPU', pair: ['gpd', 'bare'], unit: 'x bare', goal: { atMost: 1.5 } },
    { name: 'door CPU to node:http', pair: ['gpd', 'floor'], unit: 'x floor', goal: null },
  ] as const;
  const compared = comparisons.map((one) => compare(one, results));
  return [...compared, signedRow(results, verified), tailRow('door', results.get('gpd') ?? [])];
}
