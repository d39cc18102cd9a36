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

/** The floor decrypts bundles that are sealed to its own key, and moves as many bytes as gpd. */
async function createFloor(rig: Rig, plan: IngestPlan, seed: number): Promise<Subject> {
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
  const args = [rig.kid, keyFile, answer, verdict];
  return {
    name: 'floor',
    run: async () =>
      measureServer(
        await rig.startFloor('ingest.mjs', rig.freshPath('floor.db'), ...args),
        planOf(file, plan),
      ),
  };
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
    await createFloor(rig, plan, seed),
  ];
  const results = await runRounds('ingest', subjects, plan.pairs);
  return [
    compare({ name: 'ingest CPU', pair: ['gpd', 'floor'], unit: 'x floor', goal: { atMost: 1.35 } }, results),
    tailRow('ingest', results.get('gpd') ?? []),
  ];
}
