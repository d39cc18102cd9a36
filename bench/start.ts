import type { ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { runNode, startNode, stop } from './lib/child.ts';
import { note, type Row } from './lib/report.ts';
import type { Rig } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** Measures the time from spawn to the first good answer, as a multiple of the time that `node -e 0` takes. */

const ROUTES = ['/_fp/pubkey?kid=bench', '/healthz'] as const;
const ASK_EVERY_MS = 2;
const GIVE_UP_MS = 30_000;

/** Below the range of ephemeral ports: the system could give one of those to a client at any moment. */
const [LOWEST, PORTS] = [20_000, 10_000];

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

async function findFreePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * PORTS);
    if (await isFree(port)) return port;
  }
}

/** @returns false while nobody listens on the port */
function isAnswered(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ port, path, host: '127.0.0.1', agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('error', () => resolve(false));
  });
}

async function untilAnswer(child: ChildProcess, port: number, path: string): Promise<void> {
  const deadline = performance.now() + GIVE_UP_MS;
  while (!(await isAnswered(port, path))) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`no answer on ${path}`);
    await sleep(ASK_EVERY_MS);
  }
}

async function startToAnswer(rig: Rig, data: string, path: string): Promise<number> {
  const port = await findFreePort();
  const startedAt = performance.now();
  const args = rig.gpdArgs('serve', '--port', String(port));
  const child = startNode(args, { cwd: rig.directory, env: rig.environment(data) });
  try {
    await untilAnswer(child, port, path);
    return performance.now() - startedAt;
  } finally {
    await stop(child);
  }
}

export async function benchStart(rig: Rig, rounds: number): Promise<Row[]> {
  const data = rig.freshData('start');
  const bare: number[] = [];
  const ours = ROUTES.map((): number[] => []);
  // The first round only fills the page cache.
  for (let round = 0; round <= rounds; round += 1) {
    const base = (await runNode(['-e', '0'], { cwd: rig.directory })).wallSeconds * 1000;
    const times: number[] = [];
    for (const path of ROUTES) times.push(await startToAnswer(rig, data, path));
    if (round === 0) continue;
    bare.push(base);
    times.forEach((time, i) => {
      ours[i]?.push(time);
    });
  }
  rmSync(data, { recursive: true });
  return ROUTES.map((path, i) => {
    const times = ours[i] ?? [];
    note(`start to ${path}: ${median(times).toFixed(0)} ms, node -e 0: ${median(bare).toFixed(0)} ms`);
    return {
      name: `start to ${path.split('?', 1)[0]}`,
      value: pairedRatio(times, bare),
      unit: 'x node -e 0',
      goal: { atMost: 12 },
      details: { milliseconds: median(times), bare: median(bare) },
    };
  });
}
