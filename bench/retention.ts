import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../src/db/db.ts';
import { countOf } from '../src/db/sql.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../test/support/postgres.ts';
import { runNode } from './lib/child.ts';
import { settleDisk } from './lib/disk.ts';
import { fillDue } from './lib/fill.ts';
import { cpuSeconds } from './lib/proc.ts';
import { note, type Row } from './lib/report.ts';
import { drive } from './lib/requests.ts';
import type { Rig, Running } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** Retention in a server, beside visits: what it deletes a second, and how long the visits wait for it. */

export interface RetentionPlan {
  readonly rounds: number;
  /** Devices with one visit each, all of which are due: three rows a device. */
  readonly devices: number;
  readonly warmUp: number;
  /** Of each window. */
  readonly seconds: number;
}

/** Visits a second. */
const RATE = 100;
const TABLES = ['decisions', 'sightings', 'visitor_index'];
const LOOK_MS = 100;

async function countRows(location: string, kid: string): Promise<number> {
  const database = await openDatabase({ location });
  try {
    const counts = await Promise.all(TABLES.map((table) => countOf(database.read(table).where({ kid }))));
    return counts.reduce((sum, n) => sum + n, 0);
  } finally {
    await database.close();
  }
}

interface Window {
  readonly p50: number;
  readonly p99: number;
  readonly cpu: number;
}

async function visit(rig: Rig, server: Running, skip: number, seconds: number): Promise<Window> {
  const before = cpuSeconds(server.pid);
  const asked = { file: rig.wire, status: 200, skip, count: RATE * seconds, rate: RATE, connections: 200 };
  const { p50, p99 } = await drive(server.port, asked);
  return { p50, p99, cpu: (cpuSeconds(server.pid) - before) / seconds };
}

interface Round {
  readonly calm: Window;
  readonly beside: Window;
  /** Rows deleted a second. */
  readonly shared: number;
  readonly alone: number;
}

/** Until nobody has written for a second. */
const QUIET_MS = 2000;
const ALONE_MS = 4000;

/** The tenant of the rig on PostgreSQL, with its keys: what was sealed for it is opened there too. */
async function moveTo(rig: Rig, data: string, url: string): Promise<void> {
  await runNode(rig.gpdArgs('move', '--to', url, '--json'), {
    cwd: rig.directory,
    env: rig.environment(data),
  });
}

/** The server's first round of retention comes a minute after its start: until then the visits are alone. */
async function round(rig: Rig, plan: RetentionPlan, postgres: PostgresServer | null): Promise<Round> {
  const data = rig.freshData('retention');
  const url = await postgres?.freshUrl();
  if (url !== undefined) await moveTo(rig, data, url);
  const location = url ?? join(data, 'gpd.db');
  await fillDue(location, rig.kid, plan.devices);
  settleDisk();
  const { warmUp, seconds } = plan;
  const server = await rig.startGpd(data, url === undefined ? {} : { GPD_DATABASE_URL: url });
  try {
    await drive(server.port, { file: rig.wire, status: 200, skip: 0, count: warmUp });
    const calm = await visit(rig, server, warmUp, seconds);
    let left = await countRows(location, rig.kid);
    for (let now = left; now >= left; now = await countRows(location, rig.kid)) {
      left = now;
      await sleep(LOOK_MS);
    }
    /** @param added rows that came meanwhile */
    const deleting = async <T>(work: () => Promise<T>, added = 0) => {
      const before = await countRows(location, rig.kid);
      const begun = performance.now();
      const result = await work();
      const gone = before + added - (await countRows(location, rig.kid));
      return { result, rate: (gone * 1000) / (performance.now() - begun) };
    };
    const visits = RATE * seconds;
    const beside = await deleting(() => visit(rig, server, warmUp + visits, seconds), visits);
    await sleep(QUIET_MS);
    const alone = await deleting(() => sleep(ALONE_MS));
    return { calm, beside: beside.result, shared: beside.rate, alone: alone.rate };
  } finally {
    await server.stop();
    rmSync(data, { recursive: true });
  }
}

async function benchOn(rig: Rig, plan: RetentionPlan, postgres: PostgresServer | null): Promise<Row[]> {
  const name = postgres ? 'PostgreSQL' : 'SQLite';
  const rounds: Round[] = [];
  for (let n = 1; n <= plan.rounds; n += 1) {
    const one = await round(rig, plan, postgres);
    rounds.push(one);
    const { calm, beside, shared, alone } = one;
    note(
      `retention on ${name}, round ${n}: ${shared.toFixed(0)} rows a second, ${alone.toFixed(0)} without visits; ` +
        `p50 ${calm.p50.toFixed(1)} and ${beside.p50.toFixed(1)}, p99 ${calm.p99.toFixed(1)} and ${beside.p99.toFixed(1)} ms, ` +
        `${calm.cpu.toFixed(2)} and ${beside.cpu.toFixed(2)} processors`,
    );
  }
  const of = (pick: (round: Round) => number): number[] => rounds.map(pick);
  const [shared, alone] = [of((r) => r.shared), of((r) => r.alone)];
  const [calm, beside] = [of((r) => r.calm.p99), of((r) => r.beside.p99)];
  const details = { shared, alone, calm, beside };
  const perSecond = (when: string, values: readonly number[], goal: Row['goal']): Row => ({
    name: `retention ${when}, ${name}`,
    value: median(values),
    unit: 'rows/s',
    goal,
    details,
  });
  return [
    {
      name: `visits' p99 beside retention, ${name}`,
      value: pairedRatio(beside, calm),
      unit: 'x without',
      goal: { atMost: 2 },
      details,
    },
    perSecond('beside visits', shared, postgres ? { atLeast: 20_000 } : null),
    perSecond('without visits', alone, { atLeast: 20_000 }),
  ];
}

export async function benchRetention(rig: Rig, plan: RetentionPlan): Promise<Row[]> {
  const onSqlite = await benchOn(rig, plan, null);
  const missing = await missingPostgres();
  if (missing !== null)
    return [...onSqlite, { name: 'retention', value: Number.NaN, unit: missing, goal: null, details: {} }];
  const postgres = await startPostgres({ durable: true });
  try {
    return [...onSqlite, ...(await benchOn(rig, plan, postgres))];
  } finally {
    await postgres.stop();
  }
}
