import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, openDatabase } from '../src/db/db.ts';
import { purgeNonces } from '../src/ingest/decisions-store.ts';
import { purgeNetworks } from '../src/ingest/networks.ts';
import type { RecordEntry, Sighting } from '../src/ingest/ports.ts';
import { makeRecorder } from '../src/ingest/store.ts';
import { retain } from '../src/rights/retention/store.ts';
import type { Tenant } from '../src/tenants/tenant.ts';
import { makeTenantStore } from '../src/tenants/tenant-store.ts';
import { fillTables } from './lib/fill.ts';
import { cpuSeconds } from './lib/proc.ts';
import { note, type Row } from './lib/report.ts';
import type { Rig } from './lib/rig.ts';
import { median, pairedRatio } from './lib/stats.ts';

/** Ingest on tables of ten million rows against empty ones, and how long the purges of as many hold the writer. */

export interface SizePlan {
  readonly rows: number;
  readonly pairs: number;
  readonly warmUp: number;
  readonly count: number;
  /** How long the purges are looked at beside group commits. */
  readonly purgeMs: number;
}

const DAY = 86_400_000;
const IN_FLIGHT = 50;
/** What the issue of scale allows a purge to hold the writer for. */
const COMMITS = 2;

async function cpuPerBundle(rig: Rig, plan: SizePlan, data: string, skip: number): Promise<number> {
  const server = await rig.startGpd(data);
  try {
    await rig.load(server.port, skip, plan.warmUp);
    const before = cpuSeconds(server.pid);
    await rig.load(server.port, skip + plan.warmUp, plan.count);
    return ((cpuSeconds(server.pid) - before) / plan.count) * 1e6;
  } finally {
    await server.stop();
  }
}

async function benchFlat(rig: Rig, plan: SizePlan, full: string): Promise<Row> {
  const [tops, bottoms]: [number[], number[]] = [[], []];
  for (let pair = 0; pair < plan.pairs; pair += 1) {
    // Bundles are accepted once: each round has its own.
    const skip = pair * (plan.warmUp + plan.count);
    const empty = rig.freshData('size-empty');
    bottoms.push(await cpuPerBundle(rig, plan, empty, skip));
    rmSync(empty, { recursive: true });
    tops.push(await cpuPerBundle(rig, plan, full, skip));
    const [top = 0, bottom = 0] = [tops.at(-1), bottoms.at(-1)];
    note(`size pair ${pair + 1} of ${plan.pairs}: ${top.toFixed(0)} and ${bottom.toFixed(0)} µs a bundle`);
  }
  return {
    name: `ingest CPU at ${plan.rows.toLocaleString('en')} sightings`,
    value: pairedRatio(tops, bottoms),
    unit: 'x empty',
    goal: { atMost: 1.2 },
    details: { full: median(tops), empty: median(bottoms) },
  };
}

/** The same database, with a note of how long each transaction had the writer. */
function timed(database: Database, held: number[]): Database {
  return {
    ...database,
    async transaction(work, options) {
      let begun = 0;
      try {
        return await database.transaction((tx) => {
          begun = performance.now();
          return work(tx);
        }, options);
      } finally {
        held.push(performance.now() - begun);
      }
    },
  };
}

function makeVisit({ kid, createdAt: since }: Tenant, now: number): Sighting {
  const random = (bytes: number): string => randomBytes(bytes).toString('base64url');
  const durable = random(32);
  const identified = {
    durable,
    visitorId: random(16),
    epoch: 690,
    network: random(16),
    epochEndsAt: 691 * 30 * DAY,
    marked: false,
  };
  const day = Math.floor(now / DAY);
  const entry: RecordEntry = {
    kid,
    identified: { ...identified, day },
    shadow: null,
    summary: null,
    webhooks: [],
    salt: random(16),
    verdict: {
      requestId: `req_${random(20)}`,
      decidedAt: now,
      class: 'human',
      durable,
      epoch: 690,
      confidence: 0.6,
      suspectScore: 0,
      smartSignals: { bot: false, browserTampering: false, automation: [] },
      needsAttestation: false,
      declaredAgentId: null,
      consentState: { gpc: false, basis: 'asserted', purposes: ['device-identification'] },
      rules: [],
      defenses: [],
      overridden: false,
      monitor: false,
      incomplete: false,
      policyVersion: 'bench',
    } as unknown as RecordEntry['verdict'],
  };
  return {
    claim: {
      kid,
      since,
      nonce: random(16),
      datedAt: now,
    },
    device: { kid, durable, network: identified.network, day },
    decide: () => entry,
  };
}

/** As many visits at once as in the other rows, until told to end. */
async function visit(database: Database, kid: string, until: () => boolean): Promise<number> {
  const recorder = makeRecorder(database, () => performance.now());
  const tenant = await makeTenantStore(database).get(kid);
  if (!tenant) throw new Error('the bench has lost its tenant');
  let count = 0;
  const client = async (): Promise<void> => {
    while (!until()) {
      await recorder.record(makeVisit(tenant, Date.now()));
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  return count;
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

async function benchPurge(rig: Rig, plan: SizePlan, data: string): Promise<Row[]> {
  const database = await openDatabase({ location: join(data, 'gpd.db') });
  const [commits, steps]: [number[], number[]] = [[], []];
  try {
    const purged = timed(database, steps);
    const now = Date.now();
    let over = false;
    const limit = setTimeout(() => {
      over = true;
    }, plan.purgeMs);
    const ended = new Error('enough was seen');
    const stopping: Database = {
      ...purged,
      transaction: (work) => (over ? Promise.reject(ended) : purged.transaction(work)),
    };
    const purges = [
      () => retain(stopping, { kid: rig.kid, days: 90, now }),
      () => purgeNonces(stopping, now + 2 * DAY),
      () => purgeNetworks(stopping, now + DAY),
    ];
    const purging = (async () => {
      for (const purge of purges)
        await purge().catch((error: unknown) => {
          if (error !== ended) throw error;
        });
      over = true;
    })();
    const visits = await visit(timed(database, commits), rig.kid, () => over);
    await purging;
    clearTimeout(limit);
    note(
      `purge: ${steps.length} steps beside ${commits.length} commits of ${(visits / commits.length).toFixed(0)}`,
    );
  } finally {
    await database.close();
  }
  const commit = median(commits);
  const details = {
    commit,
    commitP99: quantile(commits, 0.99),
    step: median(steps),
    stepP99: quantile(steps, 0.99),
  };
  return [
    {
      name: 'purge step, p50',
      value: median(steps) / commit,
      unit: 'x group commit',
      goal: { atMost: COMMITS },
      details,
    },
    {
      name: 'purge step, p99',
      value: quantile(steps, 0.99) / quantile(commits, 0.99),
      unit: 'x group commit, p99',
      goal: { atMost: COMMITS },
      details,
    },
  ];
}

export async function benchSize(rig: Rig, plan: SizePlan): Promise<Row[]> {
  const data = rig.freshData('size-full');
  try {
    note(`size: writing ${plan.rows.toLocaleString('en')} rows of each`);
    await fillTables(join(data, 'gpd.db'), rig.kid, plan.rows);
    return [await benchFlat(rig, plan, data), ...(await benchPurge(rig, plan, data))];
  } finally {
    rmSync(data, { recursive: true });
  }
}
