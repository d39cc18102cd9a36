import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { benchClassify } from './classify.ts';
import { benchCluster } from './cluster.ts';
import { benchConsent } from './consent.ts';
import { benchConsole } from './console.ts';
import { benchCores } from './cores.ts';
import { benchIngest } from './ingest.ts';
import { formatJson, formatTable, isMissed, note, type Row } from './lib/report.ts';
import { makeRig, type Rig } from './lib/rig.ts';
import { benchMemory } from './memory.ts';
import { benchMetrics } from './metrics.ts';
import { benchOverload } from './overload.ts';
import { benchProof } from './proof.ts';
import { benchReads } from './reads.ts';
import { benchReplay } from './replay.ts';
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
  'usage: npm run bench -- [ingest|cores|overload|metrics|memory|start|consent|reads|proof|classify|replay|sdk|console|cluster|size …] [--quick] [--peers] [--json] [--assert] [--seed N]';

function makeBenches(quick: boolean, peers: boolean): ReadonlyMap<string, Bench> {
  const ingest = quick
    ? { pairs: 2, warmUp: 2000, count: 5000, open: 3000 }
    : { pairs: 5, warmUp: 20_000, count: 25_000, open: 20_000 };
  const bundles = ingest.warmUp + ingest.count + ingest.open;
  const cores = {
    connections: 400,
    ...(quick ? { pairs: 2, warmUp: 3000, count: 8000 } : { pairs: 5, warmUp: 5000, count: 25_000 }),
  };
  const flood = quick
    ? { warmUp: 3000, count: 4000, seconds: 4, bundles: 28_000 }
    : { warmUp: 5000, count: 10_000, seconds: 30, bundles: 130_000 };
  const memory = quick ? 20_000 : 100_000;
  const rounds = quick ? 5 : 11;
  const replay = quick ? { few: 2000, many: 20_000, pairs: 1 } : { few: 10_000, many: 100_000, pairs: 3 };
  const people = quick ? [1000, 100_000] : [1000, 100_000, 1_000_000];
  const consentLoad = quick
    ? { rounds: 2, warmUp: 4000, count: 8000, open: 4000, grants: 2000 }
    : { rounds: 5, warmUp: 20_000, count: 40_000, open: 40_000, grants: 10_000 };
  const consent = { ...consentLoad, populations: people, peers, seed: 1 };
  const proof = {
    few: 1000,
    many: 1_000_000,
    seed: 1,
    ...(quick ? { rounds: 3, count: 300 } : { rounds: 7, count: 1000 }),
  };
  const classifying = { seed: 1, ...(quick ? { rounds: 5, count: 10_000 } : { rounds: 11, count: 30_000 }) };
  const sdk = { rounds: quick ? 5 : 11, warmUp: 5000, count: quick ? 2000 : 5000 };
  const reads = quick
    ? {
        rounds: 2,
        keys: { warmUp: 2000, count: 4000, open: 2000 },
        pages: { warmUp: 100, count: 200, open: 100 },
        desk: { contests: 2000, decisions: 4000 },
        seed: 1,
      }
    : {
        rounds: 5,
        keys: { warmUp: 10_000, count: 30_000, open: 20_000 },
        pages: { warmUp: 500, count: 2000, open: 2000 },
        desk: { contests: 10_000, decisions: 20_000 },
        seed: 1,
      };
  const desk = {
    few: { contests: 100, decisions: 100 },
    many: quick ? { contests: 10_000, decisions: 50_000 } : { contests: 100_000, decisions: 1_000_000 },
    rounds: quick ? 7 : 21,
    seed: 1,
  };
  const size = quick
    ? { rows: 500_000, pairs: 1, warmUp: 3000, count: 8000, purgeMs: 10_000 }
    : { rows: 10_000_000, pairs: 3, warmUp: 5000, count: 20_000, purgeMs: 60_000 };
  const cluster = {
    nodes: 4,
    seed: 1,
    ...(quick ? { pairs: 1, warmUp: 2500, count: 2000 } : { pairs: 5, warmUp: 8000, count: 8000 }),
  };
  return new Map<string, Bench>([
    ['ingest', { bundles, run: (rig) => benchIngest(rig, ingest) }],
    ['cores', { bundles: cores.warmUp + cores.count, run: (rig) => benchCores(rig, cores) }],
    ['overload', { bundles: flood.bundles, run: (rig) => benchOverload(rig, flood) }],
    ['metrics', { bundles, run: (rig) => benchMetrics(rig, ingest) }],
    ['memory', { bundles: memory, run: (rig) => benchMemory(rig, memory) }],
    ['start', { bundles: 0, run: (rig) => benchStart(rig, rounds) }],
    ['consent', { bundles: 0, run: (rig) => benchConsent(rig, consent) }],
    ['reads', { bundles: 0, run: (rig) => benchReads(rig, reads) }],
    ['proof', { bundles: 0, run: (rig) => benchProof(rig, proof) }],
    ['classify', { bundles: 0, run: () => benchClassify(classifying) }],
    ['console', { bundles: 0, run: (rig) => benchConsole(rig, desk) }],
    ['size', { bundles: size.pairs * (size.warmUp + size.count), run: (rig) => benchSize(rig, size) }],
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
      json: { type: 'boolean', default: false },
      assert: { type: 'boolean', default: false },
      seed: { type: 'string', default: '1' },
      peers: { type: 'boolean', default: false },
    },
  });
  if (process.platform !== 'linux') throw new Error('the benches read /proc: run them on Linux');
  const all = makeBenches(values.quick, values.peers);
  const chosen = (positionals.length > 0 ? positionals : [...all.keys()]).map((name) => {
    const bench = all.get(name);
    if (!bench) throw new Error(`there is no bench ${name}\n${USAGE}`);
    return bench;
  });
  const rows = await runAll(chosen, Number(values.seed));
  const facts = {
    node: process.version,
    cores: cpus().length,
    quick: values.quick,
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
