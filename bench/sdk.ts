import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SDKS } from '../bin/sdks.mjs';
import { cleanEnvironment, startNode } from './lib/child.ts';
import { note, type Row } from './lib/report.ts';
import { type Rig, running } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** What an SDK adds to a call: its check beside the same request by the language's bare HTTP client, p50 of each round. */

export interface SdkPlan {
  readonly rounds: number;
  readonly warmUp: number;
  readonly count: number;
}

/** The one line that a language's program prints: microseconds, a p50 a round; the two take turns. */
interface Told {
  readonly sdk: readonly number[];
  readonly bare: readonly number[];
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FLOOR = join(ROOT, 'bench', 'floor', 'decision.mjs');

type Sdk = (typeof SDKS)[number];

function run(command: readonly string[], cwd: string, env: NodeJS.ProcessEnv): string | null {
  const [file = '', ...args] = command;
  const { status, stdout } = spawnSync(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  return status === 0 ? stdout.toString() : null;
}

function lastLine(text: string): Told | null {
  try {
    const told = JSON.parse(text.trim().split('\n').at(-1) ?? '') as Told;
    return told.sdk.length > 0 && told.sdk.length === told.bare.length ? told : null;
  } catch {
    return null;
  }
}

function measure({ name, bench }: Sdk, env: NodeJS.ProcessEnv): Told | null {
  const folder = join(ROOT, 'sdk', name);
  let told: string | null = null;
  for (const command of bench) {
    told = run(command, folder, env);
    if (told === null) return null;
  }
  return told === null ? null : lastLine(told);
}

function rowOf(name: string, told: Told | null): Row {
  const head = { name: `sdk ${name}, p50 of a check`, goal: { atMost: 1.5 } };
  if (!told) return { ...head, value: Number.NaN, unit: 'its tool chain or its program', details: {} };
  const details = { sdkMicros: median(told.sdk), bareMicros: median(told.bare) };
  note(`sdk ${name}: ${details.sdkMicros.toFixed(0)} µs, bare ${details.bareMicros.toFixed(0)} µs`);
  return { ...head, value: pairedRatio(told.sdk, told.bare), unit: 'x bare', details };
}

export async function benchSdk(rig: Rig, plan: SdkPlan): Promise<Row[]> {
  const server = await running(startNode([FLOOR], { cwd: rig.directory }));
  const env = cleanEnvironment({
    GPD_CONSENT_URL: `http://127.0.0.1:${server.port}`,
    GPD_CONSENT_KEY: `gpd_sk_${'A'.repeat(43)}`,
    BENCH_ROUNDS: String(plan.rounds),
    BENCH_WARM_UP: String(plan.warmUp),
    BENCH_COUNT: String(plan.count),
  });
  try {
    const present = SDKS.filter(({ name }) => existsSync(join(ROOT, 'sdk', name)));
    return present.map((sdk) => rowOf(sdk.name, measure(sdk, env)));
  } finally {
    await server.stop();
  }
}
