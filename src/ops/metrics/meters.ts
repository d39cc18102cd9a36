import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { INGEST_STATUS } from '../../schema/responses.ts';

/** What is counted while requests run. Labels are of closed sets: routes, statuses, reasons, classes, groups. */

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Looking up a child by its labels costs more than counting: each is looked up once. */
function childOf<Child>(find: (a: string, b: string) => Child): (a: string, b?: string) => Child {
  const known = new Map<string, Map<string, Child>>();
  return (a, b = '') => {
    const row = known.get(a) ?? new Map<string, Child>();
    known.set(a, row);
    const child = row.get(b) ?? find(a, b);
    row.set(b, child);
    return child;
  };
}

function familiesOf(registers: Registry[]) {
  const counter = (name: string, help: string, ...labelNames: string[]) => {
    const made = new Counter({ name, help, labelNames, registers });
    return childOf((...labels) => made.labels(...labels.slice(0, labelNames.length)));
  };
  const histogram = (name: string, help: string, label: string, buckets: number[]) => {
    const made = new Histogram({ name, help, labelNames: [label], buckets, registers });
    return childOf((value) => made.labels(value));
  };
  return { counter, histogram };
}

export function makeMeters() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const { counter, histogram } = familiesOf(registers);
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
  const ingest = counter('gpd_ingest_total', 'Bundles that reached the core, by reason.', 'reason');
  const verdict = counter('gpd_verdicts_total', 'Verdicts of accepted bundles, by class.', 'class');
  // At 0 from the start: a rise that begins with a new series is no rise to a rate.
  for (const reason of Object.keys(INGEST_STATUS)) ingest(reason).inc(0);
  const check = counter('gpd_consent_checks_total', 'Single consent checks, by reason.', 'reason');
  const invalid = new Counter({
    name: 'gpd_consent_state_invalid_total',
    help: 'Rows that consent is decided from and that did not carry their MAC.',
    registers,
  });
  const size = histogram(
    'gpd_batch_size',
    'Items that share one transaction or one query, by group.',
    'group',
    SIZES,
  );
  const waiting = new Gauge({
    name: 'gpd_batch_waiting',
    help: 'Items that waited when the last batch began, by group.',
    labelNames: ['group'],
    registers,
  });
  const depth = childOf((group) => waiting.labels(group));
  return {
    registry,
    request(route: string, status: number, seconds: number) {
      request(route, String(status)).inc();
      duration(route).observe(seconds);
    },
    ingest(reason: string, visitorClass: string | null) {
      ingest(reason).inc();
      if (visitorClass !== null) verdict(visitorClass).inc();
    },
    check: (reason: string) => check(reason).inc(),
    invalidState: () => invalid.inc(),
    batch(group: string, count: number, left: number) {
      size(group).observe(count);
      depth(group).set(left);
    },
  };
}
