import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { benchClassify } from './classify.ts';
import { benchCluster } from './cluster.ts';
import { benchCollisions } from './collisions.ts';
import { benchConsent } from './consent.ts';
import { benchConsole } from './console.ts';
import { benchCores } from './cores.ts';
import { benchIngest } from './ingest.ts';
import { formatJson, formatTable, isMissed, note, type Row } from './lib/report.ts';
import { makeRig, type Rig } from './lib/rig.ts';
import { benchMemory } from './memory.ts';
import { benchMetrics } from './metrics.ts';
import { benchOverload } from './overload.ts';
import { benchPasskey } from './passkey.ts';
import { benchProof } from './proof.ts';
import { benchReads } from './reads.ts';
import { benchReplay } from './replay.ts';
import { benchRetention } from './retention.ts';
import { benchSdk } from './sdk.ts';
import { benchSize } from './size.ts';
import { benchStart } from './start.ts';

/** Benches by name; results are ratios against a floor of the same run, so that they survive another machine. */

interface Bench {
  /** Sealed bundles it needs. */
  readonly bundles: number;
  readonly run: (rig: Rig) => Promise<Row[]>;
}

const USAGE =
  'usage: npm run bench -- [ingest|cores|overload|metrics|memory|start|consent|reads|proof|classify|passkey|collisions|replay|sdk|console|cluster|size|retention …] [--quick|--smoke] [--peers] [--json] [--assert] [--seed N]';

type Size = 'smoke' | 'quick' | 'whole';

/** How much each bench does. `smoke` shows that it still runs: nothing can be read off its figures. */
const PLANS = {
  smoke: {
    ingest: { pairs: 1, warmUp: 500, count: 1500, open: 1000 },
    cores: { pairs: 1, warmUp: 1000, count: 2000 },
    // Less measures no capacity, and then the load is none.
    overload: { warmUp: 3000, count: 4000, seconds: 3, bundles: 26_000 },
    memory: 5000,
    rounds: 1,
    replay: { few: 1000, many: 5000, pairs: 1 },
    people: [1000, 10_000],
    consent: { rounds: 1, warmUp: 1000, count: 2000, open: 1000, grants: 500 },
    proof: { many: 100_000, rounds: 2, count: 100 },
    classify: { rounds: 1, count: 1000 },
    passkey: { rounds: 1, count: 50 },
    sdk: { rounds: 2, count: 500 },
    reads: {
      rounds: 1,
      keys: { warmUp: 500, count: 1000, open: 500 },
      pages: { warmUp: 50, count: 100, open: 50 },
      desk: { contests: 1000, decisions: 2000 },
    },
    desk: { many: { contests: 2000, decisions: 10_000 }, rounds: 3 },
    size: { rows: 50_000, pairs: 1, warmUp: 1000, count: 2000, purgeMs: 3000 },
    cluster: { nodes: 2, pairs: 1, warmUp: 1000, count: 1000 },
    retention: { rounds: 1, devices: 60_000, warmUp: 500, seconds: 3 },
  },
  quick: {
    ingest: { pairs: 2, warmUp: 2000, count: 5000, open: 3000 },
    cores: { pairs: 2, warmUp: 3000, count: 8000 },
    // Less measures no capacity, and then the load is none.
    overload: { warmUp: 3000, count: 4000, seconds: 4, bundles: 28_000 },
    memory: 20_000,
    rounds: 5,
    replay: { few: 2000, many: 20_000, pairs: 1 },
    people: [1000, 100_000],
    consent: { rounds: 2, warmUp: 4000, count: 8000, open: 4000, grants: 2000 },
    proof: { many: 1_000_000, rounds: 3, count: 300 },
    classify: { rounds: 5, count: 10_000 },
    passkey: { rounds: 5, count: 300 },
    sdk: { rounds: 5, count: 2000 },
    reads: {
      rounds: 2,
      keys: { warmUp: 2000, count: 4000, open: 2000 },
      pages: { warmUp: 100, count: 200, open: 100 },
      desk: { contests: 2000, decisions: 4000 },
    },
    desk: { many: { contests: 10_000, decisions: 50_000 }, rounds: 7 },
    size: { rows: 500_000, pairs: 1, warmUp: 3000, count: 8000, purgeMs: 10_000 },
    cluster: { nodes: 4, pairs: 1, warmUp: 2500, count: 2000 },
    retention: { rounds: 1, devices: 400_000, warmUp: 2000, seconds: 20 },
  },
  whole: {
    ingest: { pairs: 5, warmUp: 20_000, count: 25_000, open: 20_000 },
    cores: { pairs: 5, warmUp: 5000, count: 25_000 },
    overload: { warmUp: 5000, count: 10_000, seconds: 30, bundles: 130_000 },
    memory: 100_000,
    rounds: 11,
    replay: { few: 10_000, many: 100_000, pairs: 3 },
    people: [1000, 100_000, 1_000_000],
    consent: { rounds: 5, warmUp: 20_000, count: 40_000, open: 40_000, grants: 10_000 },
    proof: { many: 1_000_000, rounds: 7, count: 1000 },
    classify: { rounds: 11, count: 30_000 },
    passkey: { rounds: 11, count: 1000 },
    sdk: { rounds: 11, count: 5000 },
    reads: {
      rounds: 5,
      keys: { warmUp: 10_000, count: 30_000, open: 20_000 },
      pages: { warmUp: 500, count: 2000, open: 2000 },
      desk: { contests: 10_000, decisions: 20_000 },
    },
    desk: { many: { contests: 100_000, decisions: 1_000_000 }, rounds: 21 },
    size: { rows: 10_000_000, pairs: 3, warmUp: 5000, count: 20_000, purgeMs: 60_000 },
    cluster: { nodes: 4, pairs: 5, warmUp: 8000, count: 8000 },
    retention: { rounds: 3, devices: 500_000, warmUp: 2000, seconds: 30 },
  },
} as const satisfies Record<Size, object>;

function makeBenches(amount: Size, peers: boolean): ReadonlyMap<string, Bench> {
  const { ingest, overload, memory, rounds, replay, size, retention, ...plan } = PLANS[amount];
  const seed = 1;
  const bundles = ingest.warmUp + ingest.count + ingest.open;
  const cores = { connections: 400, ...plan.cores };
  const consent = { ...plan.consent, populations: plan.people, peers, seed };
  const proof = { few: 1000, seed, ...plan.proof };
  const classifying = { seed, ...plan.classify };
  const sdk = { warmUp: 5000, ...plan.sdk };
  const reads = { seed, ...plan.reads };
  const desk = { few: { contests: 100, decisions: 100 }, seed, ...plan.desk };
  const cluster = { seed, ...plan.cluster };
  return new Map<string, Bench>([
    ['ingest', { bundles, run: (rig) => benchIngest(rig, ingest) }],
    ['cores', { bundles: cores.warmUp + cores.count, run: (rig) => benchCores(rig, cores) }],
    ['overload', { bundles: overload.bundles, run: (rig) => benchOverload(rig, overload) }],
    ['metrics', { bundles, run: (rig) => benchMetrics(rig, ingest) }],
    ['memory', { bundles: memory, run: (rig) => benchMemory(rig, memory) }],
    ['start', { bundles: 0, run: (rig) => benchStart(rig, rounds) }],
    ['consent', { bundles: 0, run: (rig) => benchConsent(rig, consent) }],
    ['reads', { bundles: 0, run: (rig) => benchReads(rig, reads) }],
    ['collisions', { bundles: 0, run: async () => benchCollisions(2000, seed) }],
    ['proof', { bundles: 0, run: (rig) => benchProof(rig, proof) }],
    ['classify', { bundles: 0, run: () => benchClassify(classifying) }],
    ['passkey', { bundles: 0, run: () => benchPasskey(plan.passkey) }],
    ['console', { bundles: 0, run: (rig) => benchConsole(rig, desk) }],
    ['size', { bundles: size.pairs * (size.warmUp + size.count), run: (rig) => benchSize(rig, size) }],
    [
      'retention',
      {
        bundles: retention.warmUp + 2 * 100 * retention.seconds,
        run: (rig) => benchRetention(rig, retention),
      },
    ],
    ['replay', { bundles: replay.many, run: (rig) => benchReplay(rig, replay) }],
    ['cluster', { bundles: 0, run: (rig) => benchCluster(rig, cluster) }],
    ['sdk', { bundles: 0, run: (rig) => benchSdk(rig, sdk) }],
  ]);
}

async function runAll(benches: readonly Bench[], seed: number): Promise<Row[]> {
  const rig = await makeRig();
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
      assert: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      peers: { type: 'boolean', default: false },
    },
  });
  if (process.platform !== 'linux') throw new Error('the benches read /proc: run them on Linux');
  const amount = values.smoke ? 'smoke' : values.quick ? 'quick' : 'whole';
  const all = makeBenches(amount, values.peers);
  // Retention begins a minute after a start.
  const usual = [...all.keys()].filter((name) => !values.smoke || name !== 'retention');
  const chosen = (positionals.length > 0 ? positionals : usual).map((name) => {
    const bench = all.get(name);
    if (!bench) throw new Error(`there is no bench ${name}\n${USAGE}`);
    return bench;
  });
  const rows = await runAll(chosen, Number(values.seed));
  const facts = {
    node: process.version,
    cores: cpus().length,
    amount,
    seed: Number(values.seed),
  };
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
