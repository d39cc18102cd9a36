import { createECDH } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../src/db/engine.ts';
import { writeBundles } from './lib/bundles.ts';
import type { Row } from './lib/report.ts';
import { ORIGIN, type Rig } from './lib/rig.ts';
import {
  compare,
  type MeasurePlan,
  measureServer,
  runRounds,
  type Subject,
  tailRow,
} from './lib/subjects.ts';

/** Measures ingest next to its floor: both get bundles of the same devices, in turns. */

export interface IngestPlan {
  readonly pairs: number;
  readonly warmUp: number;
  readonly count: number;
  /** Requests of the open loop. */
  readonly open: number;
}

const PROBES = 100;

async function measureAnswer(rig: Rig, data: string): Promise<number> {
  const server = await rig.startGpd(data);
  try {
    return Math.round((await rig.load(server.port, 0, PROBES)).bodyBytes);
  } finally {
    await server.stop();
  }
}

async function measureVerdict(data: string): Promise<number> {
  const database = await openDatabase({ location: join(data, 'gpd.db') });
  try {
    const rows = await database.read('decisions').avg<{ bytes: number }[]>({
      bytes: database.read.raw('length(verdict)'),
    });
    return Math.round(rows[0]?.bytes ?? 0);
  } finally {
    await database.close();
  }
}

/** The tables without which no visit could be told from its replay, no device recognised and no verdict read. */
const THREE_TABLES = 'nonces,sightings,decisions';

/**
 * The floors decrypt bundles that are sealed to a key of theirs, and move as many bytes as gpd. The first writes the same
 * rows, the second those of {@link THREE_TABLES} alone.
 */
async function createFloors(rig: Rig, plan: IngestPlan, seed: number): Promise<Subject[]> {
  const data = rig.freshData('probe');
  const answer = await measureAnswer(rig, data);
  const verdict = await measureVerdict(data);
  const key = createECDH('prime256v1');
  const publicKey = key.generateKeys();
  const keyFile = rig.freshPath('floor-key');
  writeFileSync(keyFile, key.getPrivateKey(), { mode: 0o600 });
  const file = rig.freshPath('floor-requests');
  const count = plan.warmUp + plan.count + plan.open;
  await writeBundles({ kid: rig.kid, publicKey, origin: ORIGIN, count, seed, file });
  const floorOf = (name: string, ...tables: readonly string[]): Subject => ({
    name,
    run: async () => {
      const args = [rig.freshPath('floor.db'), rig.kid, keyFile, answer, verdict, ...tables];
      return measureServer(await rig.startFloor('ingest.mjs', ...args), planOf(file, plan));
    },
  });
  return [floorOf('floor'), floorOf('three', THREE_TABLES)];
}

const planOf = (file: string, { warmUp, count, open }: IngestPlan): MeasurePlan => ({
  file,
  status: 200,
  warmUp,
  count,
  open,
});

export async function benchIngest(rig: Rig, plan: IngestPlan, seed: number): Promise<Row[]> {
  const subjects: Subject[] = [
    {
      name: 'gpd',
      run: async () => measureServer(await rig.startGpd(rig.freshData('ingest')), planOf(rig.bundles, plan)),
    },
    ...(await createFloors(rig, plan, seed)),
  ];
  const results = await runRounds('ingest', subjects, plan.pairs);
  return [
    compare({ name: 'ingest CPU', pair: ['gpd', 'floor'], unit: 'x floor', goal: { atMost: 1.35 } }, results),
    compare(
      { name: 'ingest CPU to three tables', pair: ['gpd', 'three'], unit: 'x floor', goal: { atMost: 1.3 } },
      results,
    ),
    tailRow('ingest', results.get('gpd') ?? []),
  ];
}
