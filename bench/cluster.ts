import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { missingPostgres, type PostgresServer, startPostgres } from '../test/support/postgres.ts';
import { writeBundles } from './lib/bundles.ts';
import { runNode, startNode } from './lib/child.ts';
import { cpuSeconds } from './lib/proc.ts';
import { note, type Row } from './lib/report.ts';
import { drive, PURPOSE, personId, writeRequests } from './lib/requests.ts';
import { ORIGIN, type Rig, type Running, running } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** Measures several nodes on one PostgreSQL next to one node: CPU per request, and the throughput of two cores. */

export interface ClusterPlan {
  readonly pairs: number;
  /** Requests to each node before the measurement, so that all nodes have compiled equally much of their code. */
  readonly warmUp: number;
  readonly count: number;
  readonly nodes: number;
  readonly seed: number;
}

/** Connections to each node: more nodes serve more visitors. */
const CONNECTIONS = 24;

interface Site {
  readonly postgres: PostgresServer;
  /** A database with the tenant, which each run copies. */
  readonly template: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Files of requests, each answered by 200. */
  readonly loads: Readonly<Record<'ingest' | 'check', string>>;
}

async function createSite(rig: Rig, plan: ClusterPlan, postgres: PostgresServer): Promise<Site> {
  const template = await postgres.freshUrl();
  const data = join(rig.directory, 'cluster');
  const environment = rig.environment(data);
  const gpd = async (...args: readonly string[]): Promise<Record<string, string>> => {
    const env = { ...environment, GPD_DATABASE_URL: template };
    const { stdout } = await runNode(rig.gpdArgs(...args, '--json'), { cwd: rig.directory, env });
    return JSON.parse(stdout) as Record<string, string>;
  };
  const initResult = await gpd('init', '--tenant', rig.kid, '--origin', ORIGIN);
  const { key } = await gpd('apikeys', 'create', rig.kid, '--scope', 'secret', '--name', 'bench');
  const count = plan.nodes * (plan.warmUp + plan.count);
  const ingest = join(rig.directory, 'cluster.ingest');
  const publicKey = Buffer.from(initResult['publicKey'] ?? '', 'base64');
  await writeBundles({ kid: rig.kid, publicKey, origin: ORIGIN, count, seed: plan.seed, file: ingest });
  const check = await writeRequests(join(rig.directory, 'cluster.check'), count, (i) => ({
    path: '/v1/consent/can-process',
    headers: { Authorization: `Bearer ${key}` },
    body: { principalId: personId(i), purpose: PURPOSE },
  }));
  return { postgres, template, environment, loads: { ingest, check } };
}

/** @returns seconds of CPU that PostgreSQL has used: the postmaster on that port and its children */
function databaseSeconds(template: string): number {
  const { port } = new URL(template);
  const processes = readdirSync('/proc').flatMap((name) => {
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const parent = / (\d+) /.exec(readFileSync(`/proc/${name}/stat`, 'utf8').replace(/^.*\) . /, ' '))?.[1];
      return [{ pid: Number(name), command, parent: Number(parent) }];
    } catch {
      return [];
    }
  });
  const master = processes.find(
    ({ command }) => command.includes('postgres') && command.includes(` ${port} `),
  );
  const ownShare = processes.filter(({ pid, parent }) => pid === master?.pid || parent === master?.pid);
  return ownShare.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
}

interface Measured {
  /** Microseconds of CPU per request, all nodes together. */
  readonly nodeMicros: number;
  readonly databaseMicros: number;
  readonly perSecond: number;
}

/** @param share requests to each node */
async function driveAll(file: string, nodes: readonly Running[], skip: number, share: number): Promise<void> {
  await Promise.all(
    nodes.map(({ port }, i) =>
      drive(port, { file, skip: skip + i * share, count: share, connections: CONNECTIONS, status: 200 }),
    ),
  );
}

async function run(
  rig: Rig,
  site: Site,
  plan: ClusterPlan,
  load: keyof Site['loads'],
  count: number,
): Promise<Measured> {
  const url = await site.postgres.freshUrl(site.template);
  const env = { ...site.environment, GPD_DATABASE_URL: url };
  const nodes = await Promise.all(
    Array.from({ length: count }, () =>
      running(startNode(rig.gpdArgs('serve', '--port', '0', '--json'), { cwd: rig.directory, env })),
    ),
  );
  const readCpuSeconds = (): number => nodes.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0);
  try {
    await driveAll(site.loads[load], nodes, 0, plan.warmUp);
    const [ownBefore, databaseBefore, startedAt] = [
      readCpuSeconds(),
      databaseSeconds(site.template),
      performance.now(),
    ];
    await driveAll(site.loads[load], nodes, nodes.length * plan.warmUp, plan.count);
    const seconds = (performance.now() - startedAt) / 1000;
    const answered = nodes.length * plan.count;
    return {
      nodeMicros: ((readCpuSeconds() - ownBefore) / answered) * 1e6,
      databaseMicros: ((databaseSeconds(site.template) - databaseBefore) / answered) * 1e6,
      perSecond: answered / seconds,
    };
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
  }
}

async function compare(rig: Rig, site: Site, plan: ClusterPlan, load: keyof Site['loads']): Promise<Row[]> {
  const [clusterRuns, singleRuns]: [Measured[], Measured[]] = [[], []];
  for (let pair = 1; pair <= plan.pairs; pair += 1) {
    const order = pair % 2 === 0 ? [1, plan.nodes] : [plan.nodes, 1];
    for (const count of order)
      (count === 1 ? singleRuns : clusterRuns).push(await run(rig, site, plan, load, count));
    const words = [clusterRuns, singleRuns].map((runs) => {
      const { nodeMicros, databaseMicros, perSecond } = runs.at(-1) as Measured;
      return `${nodeMicros.toFixed(0)} + ${databaseMicros.toFixed(0)} µs, ${perSecond.toFixed(0)}/s`;
    });
    note(
      `cluster ${load} pair ${pair} of ${plan.pairs}: ${plan.nodes} nodes ${words[0]}; 1 node ${words[1]}`,
    );
  }
  const row = (name: string, value: (run: Measured) => number, goal: number | null): Row => ({
    name: `cluster ${load} ${name}, ${plan.nodes} nodes`,
    value: pairedRatio(clusterRuns.map(value), singleRuns.map(value)),
    unit: 'x 1 node',
    goal: goal === null ? null : { atMost: goal },
    details: { many: median(clusterRuns.map(value)), one: median(singleRuns.map(value)) },
  });
  return [
    row('CPU', (each) => each.nodeMicros, 1.25),
    row('CPU of PostgreSQL', (each) => each.databaseMicros, null),
    row('per second', (each) => each.perSecond, null),
  ];
}

export async function benchCluster(rig: Rig, plan: ClusterPlan): Promise<Row[]> {
  const missing = await missingPostgres();
  if (missing !== null)
    return [{ name: 'cluster', value: Number.NaN, unit: missing, goal: null, details: {} }];
  const postgres = await startPostgres();
  try {
    const site = await createSite(rig, plan, postgres);
    return [...(await compare(rig, site, plan, 'ingest')), ...(await compare(rig, site, plan, 'check'))];
  } finally {
    await postgres.stop();
  }
}
