import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { cpuSeconds, memory } from './proc.ts';
import { type Beside, type Goal, note, type Row } from './report.ts';
import { drive } from './requests.ts';
import type { Running } from './rig.ts';
import { median, pairedRatio } from './stats.ts';

/** Measures servers that answer the same requests, in turns and in the same way, and reports ratios between them. */

export interface Measured {
  /** Microseconds of CPU per request, all threads of the server. */
  readonly cpuMicros: number;
  /** Answers per second of the closed loop: the capacity of the server. */
  readonly rate: number;
  /** Resident set after the closed loop, in MB. */
  readonly rssMb: number;
  /** Milliseconds in an open loop at {@link LOADED} of that rate. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

export interface Subject {
  readonly name: string;
  readonly run: () => Promise<Measured>;
}

export interface MeasurePlan {
  readonly file: string;
  readonly status: number;
  readonly warmUp: number;
  /** Requests of the closed loop. */
  readonly count: number;
  /** Requests of the open loop after it. */
  readonly open: number;
}

/**
 * Writes the sealed bundles, hundreds of megabytes, to the disk before anything is measured: the kernel would do so half a
 * minute later, in the middle of a measurement.
 */
function settleDisk(): void {
  execFileSync('sync', ['-f', tmpdir()]);
}

const LOADED = 0.7;
/** Enough that no request waits for a connection below the capacity. */
const OPEN_CONNECTIONS = 200;

/** Warms a server up with the first requests of a file, measures it with the next ones, and stops it. */
export async function measureServer(server: Running, plan: MeasurePlan): Promise<Measured> {
  const { file, status, warmUp, count, open } = plan;
  try {
    settleDisk();
    await drive(server.port, { file, status, skip: 0, count: warmUp });
    const before = cpuSeconds(server.pid);
    const closed = await drive(server.port, { file, status, skip: warmUp, count });
    const cpuMicros = ((cpuSeconds(server.pid) - before) / count) * 1e6;
    const rssMb = memory(server.pid)?.rssMb ?? Number.NaN;
    const rate = count / closed.seconds;
    const arrivals = { rate: rate * LOADED, connections: OPEN_CONNECTIONS };
    const timed = await drive(server.port, { file, status, skip: warmUp + count, count: open, ...arrivals });
    return { cpuMicros, rate, rssMb, p50: timed.p50, p99: timed.p99, p999: timed.p999 };
  } finally {
    await server.stop();
  }
}

export type Results = ReadonlyMap<string, readonly Measured[]>;

/** Measures all subjects in each round, so that a slow machine slows all of them. */
export async function runRounds(
  bench: string,
  subjects: readonly Subject[],
  rounds: number,
): Promise<Results> {
  const results = new Map<string, Measured[]>(subjects.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const { name, run } of subjects) {
      const result = await run();
      results.get(name)?.push(result);
      const { cpuMicros, rate, p50, p99 } = result;
      const figures = `${cpuMicros.toFixed(0)} µs CPU, ${rate.toFixed(0)} a second`;
      note(`${bench} round ${round}, ${name}: ${figures}, p50 ${p50.toFixed(2)}, p99 ${p99.toFixed(2)} ms`);
    }
  }
  return results;
}

export interface Comparison {
  readonly name: string;
  readonly pair: readonly [string, string];
  readonly unit: string;
  readonly goal: Goal | null;
}

const EXTRA_MEASURES: Readonly<Record<keyof Beside, (run: Measured) => number>> = {
  rate: (run) => run.rate,
  p50: (run) => run.p50,
  p99: (run) => run.p99,
  p999: (run) => run.p999,
  rss: (run) => run.rssMb,
};

/** The value of the row is CPU per request; the other ratios go next to it. */
export function compare({ name, pair, unit, goal }: Comparison, results: Results): Row {
  const [ours, floorRuns] = [results.get(pair[0]) ?? [], results.get(pair[1]) ?? []];
  const ratio = (of: (run: Measured) => number): number => pairedRatio(ours.map(of), floorRuns.map(of));
  const extraRatios = Object.entries(EXTRA_MEASURES).map(([column, of]) => [column, ratio(of)] as const);
  const plain = Object.entries({ cpuMicros: (run: Measured) => run.cpuMicros, ...EXTRA_MEASURES }).flatMap(
    ([column, of]) => [
      [`ours ${column}`, median(ours.map(of))] as const,
      [`other ${column}`, median(floorRuns.map(of))] as const,
    ],
  );
  return {
    name,
    value: ratio((run) => run.cpuMicros),
    unit,
    goal,
    beside: Object.fromEntries(extraRatios),
    details: {
      ...Object.fromEntries(plain),
      ratios: ours.map((run, i) => run.cpuMicros / (floorRuns[i]?.cpuMicros ?? Number.NaN)),
    },
  };
}

/** Measures slow requests next to ordinary ones, both in one run below its capacity. */
export function tailRow(name: string, runs: readonly Measured[]): Row {
  return rowOfTail(name, runs, {
    unit: 'x p50',
    goal: { atMost: 5 },
    pairedTimes: runs.map((run) => run.p50),
  });
}

/** Measures slow requests next to those of a floor, each at {@link LOADED} of what it can do. */
export function tailOverFloorRow(
  name: string,
  runs: readonly Measured[],
  floorRuns: readonly Measured[],
): Row {
  return rowOfTail(name, runs, {
    unit: "x floor's p99",
    goal: { atMost: 1.2 },
    pairedTimes: floorRuns.map((run) => run.p99),
  });
}

function rowOfTail(
  name: string,
  runs: readonly Measured[],
  {
    unit,
    goal,
    pairedTimes,
  }: { readonly unit: string; readonly goal: Goal; readonly pairedTimes: readonly number[] },
): Row {
  const p99 = runs.map((run) => run.p99);
  return {
    name: `${name} p99 at ${LOADED * 100} % load`,
    value: pairedRatio(p99, pairedTimes),
    unit,
    goal,
    details: { p50: median(runs.map((run) => run.p50)), p99: median(p99), other: median(pairedTimes) },
  };
}
