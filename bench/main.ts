import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { benchCheck } from './check.ts';
import { benchCluster } from './cluster.ts';
import { benchDoor } from './door.ts';
import { benchGrant } from './grant.ts';
import { benchIngest } from './ingest.ts';
import { BANNER } from './lib/peers.ts';
import { formatJson, formatTable, isMissed, note, type Row } from './lib/report.ts';
import { createRig, type Rig } from './lib/rig.ts';
import { describeRun, drawTable } from './lib/svg.ts';
import { benchMemory } from './memory.ts';
import { benchOverload } from './overload.ts';
import { benchSize } from './size.ts';
import { benchStart } from './start.ts';

/** Runs benches by name. Results are ratios to a floor measured in the same run, so that other machines give similar ones. */

interface Bench {
  /** Number of sealed bundles that the bench needs. */
  readonly bundles: number;
  readonly run: (rig: Rig) => Promise<Row[]>;
}

const USAGE =
  'usage: npm run bench -- [ingest|overload|check|door|grant|size|cluster|start|memory …] [--quick|--smoke] [--json] [--svg FILE] [--assert] [--seed N]';

type Size = 'smoke' | 'quick' | 'whole';

/** Amount of work per bench. `smoke` only shows that the benches still run: its figures mean nothing. */
const PLANS = {
  smoke: {
    ingest: { pairs: 1, warmUp: 500, count: 1500, open: 1000 },
    overload: { rounds: 1, warmUp: 500, count: 1500, open: 4000, refusals: 1000 },
    check: { rounds: 1, warmUp: 1000, count: 2000, open: 1000, populations: [500, 2000] },
    door: { rounds: 1, warmUp: 1000, count: 2000, open: 1000 },
    grant: { rounds: 1, count: 500 },
    size: { rows: 50_000, pairs: 1, warmUp: 1000, count: 2000 },
    cluster: { nodes: 2, pairs: 1, warmUp: 1000, count: 1000 },
    start: 1,
    memory: 5000,
  },
  quick: {
    ingest: { pairs: 2, warmUp: 2000, count: 5000, open: 3000 },
    overload: { rounds: 2, warmUp: 2000, count: 4000, open: 10_000, refusals: 2500 },
    check: { rounds: 2, warmUp: 4000, count: 8000, open: 4000, populations: [1000, 20_000] },
    door: { rounds: 2, warmUp: 4000, count: 20_000, open: 5000 },
    grant: { rounds: 2, count: 2000 },
    size: { rows: 500_000, pairs: 1, warmUp: 3000, count: 8000 },
    cluster: { nodes: 4, pairs: 1, warmUp: 2500, count: 2000 },
    start: 5,
    memory: 20_000,
  },
  whole: {
    ingest: { pairs: 5, warmUp: 20_000, count: 25_000, open: 20_000 },
    overload: { rounds: 5, warmUp: 5000, count: 15_000, open: 60_000, refusals: 5000 },
    check: { rounds: 5, warmUp: 20_000, count: 40_000, open: 40_000, populations: [1000, 100_000] },
    door: { rounds: 5, warmUp: 20_000, count: 50_000, open: 50_000 },
    grant: { rounds: 5, count: 10_000 },
    size: { rows: 10_000_000, pairs: 3, warmUp: 5000, count: 20_000 },
    cluster: { nodes: 4, pairs: 5, warmUp: 8000, count: 8000 },
    start: 11,
    memory: 100_000,
  },
} as const satisfies Record<Size, object>;

function createBenches(size: Size, seed: number): ReadonlyMap<string, Bench> {
  const plan = PLANS[size];
  const { ingest, overload } = plan;
  return new Map<string, Bench>([
    [
      'ingest',
      {
        bundles: ingest.warmUp + ingest.count + ingest.open,
        run: (rig) => benchIngest(rig, ingest, seed),
      },
    ],
    [
      'overload',
      {
        bundles: overload.warmUp + overload.count + overload.open,
        run: (rig) => benchOverload(rig, overload),
      },
    ],
    ['check', { bundles: 0, run: (rig) => benchCheck(rig, { ...plan.check, seed }) }],
    ['door', { bundles: 0, run: (rig) => benchDoor(rig, plan.door) }],
    ['grant', { bundles: 0, run: (rig) => benchGrant(rig, plan.grant) }],
    [
      'size',
      {
        bundles: plan.size.pairs * (plan.size.warmUp + plan.size.count),
        run: (rig) => benchSize(rig, plan.size),
      },
    ],
    ['cluster', { bundles: 0, run: (rig) => benchCluster(rig, { ...plan.cluster, seed }) }],
    ['start', { bundles: 0, run: (rig) => benchStart(rig, plan.start) }],
    ['memory', { bundles: plan.memory, run: (rig) => benchMemory(rig, plan.memory) }],
  ]);
}

async function runAll(benches: readonly Bench[], seed: number): Promise<Row[]> {
  const rig = await createRig();
  try {
    const count = Math.max(...benches.map((bench) => bench.bundles));
    if (count > 0) note(`sealing ${count} bundles, seed ${seed}`);
    await rig.seal(count, seed);
    const rows: Row[] = [];
    for (const bench of benches) rows.push(...(await bench.run(rig)));
    return rows;
  } finally {
    rig.remove();
  }
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      smoke: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      svg: { type: 'string' },
      assert: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
    },
  });
  if (process.platform !== 'linux') throw new Error('the benches read /proc: run them on Linux');
  const size = values.smoke ? 'smoke' : values.quick ? 'quick' : 'whole';
  const seed = Number(values.seed);
  const all = createBenches(size, seed);
  const chosen = (positionals.length > 0 ? positionals : [...all.keys()]).map((name) => {
    const bench = all.get(name);
    if (!bench) throw new Error(`there is no bench ${name}\n${USAGE}`);
    return bench;
  });
  const rows = await runAll(chosen, seed);
  const facts = { node: process.version, cores: cpus().length, size, seed };
  if (values.svg !== undefined)
    writeFileSync(values.svg, drawTable([...rows, BANNER], describeRun({ size, now: new Date() })));
  console.log(values.json ? formatJson(rows, facts) : formatTable(rows));
  return values.assert && rows.some(isMissed) ? 1 : 0;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    note(error instanceof Error ? error.message : String(error));
    process.exitCode = 2;
  },
);
