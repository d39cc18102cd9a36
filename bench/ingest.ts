import { join } from 'node:path';
import { openDatabase } from '../src/db/db.ts';
import type { Row } from './lib/report.ts';
import type { Rig } from './lib/rig.ts';
import {
  type Asked,
  compare,
  type Measured,
  measureServer,
  runRounds,
  type Subject,
  tailRow,
} from './lib/subjects.ts';

/** Ingest beside its floor and beside Express: the same requests in the same run, turn by turn. */

export interface IngestPlan {
  readonly pairs: number;
  readonly warmUp: number;
  readonly count: number;
  /** Of the open loop. */
  readonly open: number;
}

const PROBES = 100;

interface Sizes {
  readonly answer: number;
  readonly verdict: number;
}

const asked = (rig: Rig, { warmUp, count, open }: IngestPlan): Asked => ({
  file: rig.wire,
  status: 200,
  warmUp,
  count,
  open,
});

async function probeAnswer(rig: Rig, data: string): Promise<number> {
  const server = await rig.startGpd(data);
  try {
    return (await rig.load(server.port, 0, PROBES)).bodyBytes;
  } finally {
    await server.stop();
  }
}

/** How long gpd's answers and stored verdicts are today: the floor moves as many bytes. */
async function probeSizes(rig: Rig): Promise<Sizes> {
  const data = rig.freshData('probe');
  const answer = await probeAnswer(rig, data);
  const database = await openDatabase({ location: join(data, 'gpd.db') });
  try {
    const rows = await database.read('decisions').avg<{ bytes: number }[]>({
      bytes: database.read.raw('length(verdict)'),
    });
    return { answer: Math.round(answer), verdict: Math.round(rows[0]?.bytes ?? 0) };
  } finally {
    await database.close();
  }
}

export async function runGpd(
  rig: Rig,
  plan: IngestPlan,
  settings: Readonly<Record<string, string>> = {},
): Promise<Measured> {
  return measureServer(await rig.startGpd(rig.freshData('ingest'), settings), asked(rig, plan));
}

function other(rig: Rig, plan: IngestPlan, sizes: Sizes, program: readonly string[]): Subject['run'] {
  const [name = '', ...args] = program;
  return async () => {
    const { kid, keyFile } = rig;
    const { answer, verdict } = sizes;
    const server = await rig.startOther(
      name,
      ...args,
      rig.freshPath('other.db'),
      kid,
      keyFile,
      answer,
      verdict,
    );
    return measureServer(server, asked(rig, plan));
  };
}

export async function benchIngest(rig: Rig, plan: IngestPlan): Promise<Row[]> {
  const sizes = await probeSizes(rig);
  const subjects: Subject[] = [
    { name: 'gpd', run: () => runGpd(rig, plan) },
    { name: 'floor', run: other(rig, plan, sizes, ['floor/ingest.mjs']) },
    { name: 'Express', run: other(rig, plan, sizes, ['peers/express.mjs', 'ingest']) },
  ];
  const results = await runRounds('ingest', subjects, plan.pairs);
  const cpu = 'ingest CPU per bundle';
  return [
    compare({ name: cpu, pair: ['gpd', 'floor'], unit: 'x floor', goal: { atMost: 1.35 } }, results),
    compare({ name: cpu, pair: ['gpd', 'Express'], unit: 'x Express', goal: null }, results),
    tailRow('ingest', results.get('gpd') ?? []),
  ];
}
