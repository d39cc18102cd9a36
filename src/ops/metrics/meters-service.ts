import { statfsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { OUTCOMES } from '../../attest/ceremony.ts';
import type { BatchBegun } from '../../db/group-commit.ts';
import { SECOND } from '../../lib/clock.ts';
import { memoised } from '../../lib/collections.ts';
import { JOB_RESULTS, type JobResult } from '../../lib/jobs.ts';
import { INGEST_STATUS } from '../../schema/responses.ts';
import { readDoctorRecord } from '../doctor/record-files.ts';
import { WRITE_FAULTS } from '../write-faults.ts';
import type { Stock } from './stock-store.ts';

/**
 * The metrics that requests update. Labels come from closed sets: routes, statuses, reasons, classes, groups.
 */

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Remembers the child metric of each label: prom-client's lookup costs more than counting. */
function childOf<Child>(find: (a: string, b: string) => Child): (a: string, b?: string) => Child {
  const rows = memoised((a: string) => memoised((b: string) => find(a, b)));
  return (a, b = '') => rows(a)(b);
}

function familiesOf(registers: Registry[]) {
  const counter = (name: string, help: string, ...labelNames: string[]) => {
    const metric = new Counter({ name, help, labelNames, registers });
    return childOf((...labels) => metric.labels(...labels.slice(0, labelNames.length)));
  };
  const histogram = (name: string, help: string, label: string, buckets: number[]) => {
    const metric = new Histogram({ name, help, labelNames: [label], buckets, registers });
    return childOf((value) => metric.labels(value));
  };
  const gauge = (name: string, help: string, label: string) => {
    const metric = new Gauge({ name, help, labelNames: [label], registers });
    return childOf((value) => metric.labels(value));
  };
  /** Sets a counter to 0 for each known label value, so that no series is missing before its first event. */
  const countBy = (name: string, help: string, label: string, values: readonly string[]) => {
    const count = counter(name, help, label);
    for (const value of values) count(value).inc(0);
    return (value: string): void => count(value).inc();
  };
  return { counter, histogram, gauge, countBy };
}

export function createMeters() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { counter, histogram, gauge, countBy } = familiesOf([registry]);
  const request = counter(
    'gpd_requests_total',
    'Requests that were answered, by route and status.',
    'route',
    'status',
  );
  const duration = histogram(
    'gpd_request_seconds',
    'Seconds from the head of a request to the end of its answer.',
    'route',
    SECONDS,
  );
  const reasons = Object.keys(INGEST_STATUS);
  const ingest = countBy('gpd_ingest_total', 'Bundles that reached the core, by reason.', 'reason', reasons);
  const verdict = countBy('gpd_verdicts_total', 'Verdicts of accepted bundles, by class.', 'class', []);
  const check = countBy('gpd_consent_checks_total', 'Single consent checks, by reason.', 'reason', []);
  const forged = 'Rows that consent is decided from and that did not carry their MAC.';
  const invalid = counter('gpd_consent_state_invalid_total', forged);
  const size = histogram(
    'gpd_batch_size',
    'Items that share one transaction or one query, by group.',
    'group',
    SIZES,
  );
  const depth = gauge('gpd_batch_waiting', 'Items that waited when the last batch began, by group.', 'group');
  const ran = 'Runs of the jobs of housekeeping, by job and result.';
  const job = counter('gpd_jobs_total', ran, 'job', 'result');
  const witnessed = ['cosigned', 'unreachable', 'refused', 'fork'];
  const cosigned = 'Answers of witnesses to checkpoints, by result.';
  const refused = 'Write transactions that the disk refused, by reason.';
  const attested = 'Ceremonies of passkeys, by result.';
  return {
    registry,
    request(route: string, status: number, seconds: number) {
      request(route, String(status)).inc();
      duration(route).observe(seconds);
    },
    ingest(reason: string, visitorClass: string | null) {
      ingest(reason);
      if (visitorClass !== null) verdict(visitorClass);
    },
    check,
    cosigning: countBy('gpd_cosignatures_total', cosigned, 'result', witnessed),
    /** The other results begin at 0, so that no series is missing before its first event. */
    job: (name: string, result: JobResult): void => {
      for (const each of JOB_RESULTS) job(name, each).inc(each === result ? 1 : 0);
    },
    writeFault: countBy('gpd_write_faults_total', refused, 'reason', WRITE_FAULTS),
    attestation: countBy('gpd_attestations_total', attested, 'result', OUTCOMES),
    invalidState: () => invalid('').inc(),
    batch({ group, size: items, waiting }: BatchBegun) {
      size(group).observe(items);
      depth(group).set(waiting);
    },
  };
}

const KEEP_MS = 10 * SECOND;
/** Prometheus gives up a scrape after 10 s. */
const LIMIT_MS = 5 * SECOND;

/** Gauges of the database, read when somebody scrapes the metrics and at most every ten seconds. */
interface StockSource {
  readonly read: () => Promise<Stock>;
  readonly onFault: (error: unknown) => void;
  /** Milliseconds that no clock change affects. */
  readonly monotonic?: () => number;
  readonly limitMs?: number;
}

/**
 * @returns a reader that gives null while the database cannot be read, reports each failure, and never reads
 * twice at a time
 */
function createReader(source: StockSource): () => Promise<Stock | null> {
  const { read, onFault, monotonic = () => performance.now(), limitMs = LIMIT_MS } = source;
  let stock: Promise<Stock | null> | null = null;
  let readAt = 0;
  let isReading = false;
  const start = (): Promise<Stock | null> => {
    isReading = true;
    readAt = monotonic();
    const reading = read().finally(() => {
      isReading = false;
    });
    const timeout = sleep(limitMs, null, { ref: false });
    const answer = Promise.race([reading, timeout]).then((stock) => {
      if (stock === null) throw new Error('the database did not answer in time');
      return stock;
    });
    return answer.catch((error: unknown) => {
      onFault(error);
      if (!isReading) stock = null;
      return null;
    });
  };
  return () => {
    if (stock === null || (!isReading && monotonic() - readAt >= KEEP_MS)) stock = start();
    return stock;
  };
}

type GaugeValue = (stock: Stock) => number | null;

const inSeconds = (at: number | null): number | null => (at === null ? null : at / SECOND);

const LATE = 'Contests whose time is over and that nobody resolved.';
const UNFINISHED = 'Erasures that began over five minutes ago and are not done.';
const BACKUP = 'When gpd last made a backup; 0: never, and the database is SQLite.';
const SWEEP = 'When some node last left no job of housekeeping failing.';
const CHECKPOINT = 'When the newest checkpoint of any log was signed.';
const SEAL_KEY = 'When the oldest published seal key was published.';

/** Each node exports the same values, read from the database: alert on the maximum. */
const GAUGES: readonly (readonly [name: string, help: string, value: GaugeValue])[] = [
  ['gpd_tenants', 'Tenants.', ({ tenants }) => tenants],
  ['gpd_ledger_entries', 'Entries of all logs together.', ({ ledgerEntries }) => ledgerEntries],
  ['gpd_webhooks_waiting', 'Deliveries that wait.', ({ webhooksWaiting }) => webhooksWaiting],
  ['gpd_webhooks_failed', 'Deliveries that were given up.', ({ webhooksFailed }) => webhooksFailed],
  ['gpd_database_bytes', 'Size of the database.', ({ databaseBytes }) => databaseBytes],
  ['gpd_database_wal_bytes', 'Size of the write-ahead log (SQLite).', ({ walBytes }) => walBytes],
  ['gpd_contests_overdue', LATE, ({ overdueContests }) => overdueContests],
  ['gpd_erasures_incomplete', UNFINISHED, ({ incompleteErasures }) => incompleteErasures],
  // PostgreSQL may have backups that gpd does not see: it has no time then.
  [
    'gpd_last_backup_timestamp_seconds',
    BACKUP,
    ({ kind, lastBackupAt }) => inSeconds(lastBackupAt ?? (kind === 'sqlite' ? 0 : null)),
  ],
  ['gpd_last_sweep_timestamp_seconds', SWEEP, ({ lastSweepAt }) => inSeconds(lastSweepAt)],
  [
    'gpd_newest_checkpoint_timestamp_seconds',
    CHECKPOINT,
    ({ newestCheckpointAt }) => inSeconds(newestCheckpointAt),
  ],
  ['gpd_oldest_seal_key_timestamp_seconds', SEAL_KEY, ({ oldestSealKeyAt }) => inSeconds(oldestSealKeyAt)],
];

export function registerStock(registry: Registry, source: StockSource): void {
  const readStock = createReader(source);
  for (const [name, help, value] of GAUGES) {
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        const stock = await readStock();
        const now = stock && value(stock);
        // An unreachable database removes only its own gauges; `reset` would export 0.
        if (now === null) this.remove();
        else this.set(now);
      },
    });
  }
}

/** Alerts need what GET /readyz answers as metrics. */
export function registerReadiness(
  registry: Registry,
  state: { readonly notReady: () => readonly string[]; readonly degraded: () => readonly string[] },
): void {
  const gauges: readonly (readonly [string, string, () => number])[] = [
    ['gpd_ready', '1 if GET /readyz answers 200.', () => (state.notReady().length === 0 ? 1 : 0)],
    ['gpd_degraded', 'Parts that GET /readyz names as degraded.', () => state.degraded().length],
  ];
  for (const [name, help, value] of gauges)
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value());
      },
    });
}

/** The gauges that need no database. */
export function registerNode(registry: Registry, dataDir: string, version: string): void {
  const registers = [registry];
  const node = process.versions.node;
  const help = 'Always 1; the versions of gpd and Node.js are in the labels.';
  new Gauge({ name: 'gpd_build_info', help, labelNames: ['version', 'node'], registers }).set(
    { version, node },
    1,
  );
  new Gauge({
    name: 'gpd_disk_free_bytes',
    // At 0 gpd refuses every write with 503.
    help: 'Free bytes of the disk with the data directory.',
    registers,
    collect() {
      const { bavail, bsize } = statfsSync(dataDir);
      this.set(bavail * bsize);
    },
  });
  new Gauge({
    name: 'gpd_disk_size_bytes',
    help: 'Size of the disk with the data directory.',
    registers,
    collect() {
      const { blocks, bsize } = statfsSync(dataDir);
      this.set(blocks * bsize);
    },
  });
  new Gauge({
    name: 'gpd_doctor_checks',
    help: 'Checks of the last gpd doctor --record on this node, by status.',
    labelNames: ['status'],
    registers,
    collect() {
      this.reset();
      const record = readDoctorRecord(dataDir);
      if (!record) return;
      for (const [status, count] of Object.entries(record.counts)) this.set({ status }, count);
    },
  });
  new Gauge({
    name: 'gpd_last_doctor_timestamp_seconds',
    help: 'When gpd doctor --record last ran on this node; 0: never.',
    registers,
    collect() {
      this.set((readDoctorRecord(dataDir)?.at ?? 0) / SECOND);
    },
  });
}
