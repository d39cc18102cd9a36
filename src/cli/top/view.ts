import type { Stock, Traffic } from '../../ops/metrics/stock-store.ts';
import { quantile, type Sample, sumByLabel, totalOf } from './exposition.ts';

/**
 * Computes and formats the numbers of `gpd top`: rates between two readings of the metrics, or counts from
 * the database.
 */

export interface Reading {
  readonly at: number;
  readonly samples: readonly Sample[];
}

/** A value is null where only metrics know it. */
export type TopView = ReturnType<typeof viewOf> | ReturnType<typeof viewOfCounts>;

type Counts = Readonly<Record<string, number>>;

/** A counter that decreased belongs to a restarted server: it counts from zero. */
function countDeltas(before: Counts, after: Counts): Record<string, number> {
  const rows = Object.entries(after).map(([key, value]) => {
    const old = before[key] ?? 0;
    return [key, value >= old ? value - old : value] as const;
  });
  return Object.fromEntries(rows.filter(([, value]) => value > 0));
}

const sum = (counts: Counts): number => Object.values(counts).reduce((total, value) => total + value, 0);

function samplesOfRoute(samples: readonly Sample[], route: string): readonly Sample[] {
  return samples.filter(({ labels }) => labels['route'] === route);
}

export function viewOf(before: Reading, after: Reading) {
  const seconds = Math.max(0.001, (after.at - before.at) / 1000);
  const countsBetween = (name: string, label: string): Record<string, number> =>
    countDeltas(sumByLabel(before.samples, name, label), sumByLabel(after.samples, name, label));
  const statuses = countsBetween('gpd_requests_total', 'status');
  const failed = Object.entries(statuses).filter(([status]) => status.startsWith('5'));
  const requests = countsBetween('gpd_requests_total', 'route');
  const routes = Object.entries(requests)
    .map(([route, count]) => {
      const name = 'gpd_request_seconds_bucket';
      const buckets = countDeltas(
        sumByLabel(samplesOfRoute(before.samples, route), name, 'le'),
        sumByLabel(samplesOfRoute(after.samples, route), name, 'le'),
      );
      const ms = (q: number): number | null => {
        const value = quantile(buckets, q);
        return value === null ? null : value * 1000;
      };
      return { route, perSecond: count / seconds, p50Ms: ms(0.5), p99Ms: ms(0.99) };
    })
    .sort((a, b) => b.perSecond - a.perSecond);
  const items = countsBetween('gpd_batch_size_sum', 'group');
  const batches = countsBetween('gpd_batch_size_count', 'group');
  const waiting = sumByLabel(after.samples, 'gpd_batch_waiting', 'group');
  const lag = totalOf(after.samples, 'nodejs_eventloop_lag_p99_seconds');
  const classes = countsBetween('gpd_verdicts_total', 'class');
  return {
    source: 'metrics' as const,
    seconds,
    requestsPerSecond: sum(requests) / seconds,
    errorsPerSecond: sum(Object.fromEntries(failed)) / seconds,
    verdictsPerSecond: sum(classes) / seconds,
    checksPerSecond: sum(countsBetween('gpd_consent_checks_total', 'reason')) / seconds,
    /** Verdicts by class between the two readings; without metrics, those of the last day. */
    classes,
    reasons: countsBetween('gpd_ingest_total', 'reason'),
    routes,
    groups: Object.entries(batches).map(([group, count]) => {
      return { group, waiting: waiting[group] ?? 0, meanSize: (items[group] ?? 0) / count };
    }),
    eventLoopP99Ms: lag === null ? null : lag * 1000,
    residentBytes: totalOf(after.samples, 'process_resident_memory_bytes'),
    ledgerEntries: totalOf(after.samples, 'gpd_ledger_entries'),
    webhooksWaiting: totalOf(after.samples, 'gpd_webhooks_waiting'),
  };
}

/** Without metrics, most numbers are null. */
export function viewOfCounts(
  stock: Pick<Stock, 'ledgerEntries' | 'webhooksWaiting'>,
  traffic: Pick<Traffic, 'lastMinute' | 'byClass'>,
) {
  return {
    source: 'database' as const,
    seconds: 60,
    requestsPerSecond: null,
    errorsPerSecond: null,
    verdictsPerSecond: traffic.lastMinute / 60,
    checksPerSecond: null,
    classes: traffic.byClass,
    reasons: {},
    routes: [],
    groups: [],
    eventLoopP99Ms: null,
    residentBytes: null,
    ledgerEntries: stock.ledgerEntries,
    webhooksWaiting: stock.webhooksWaiting,
  };
}

const formatDecimal = (value: number | null, unit = ''): string =>
  value === null ? '–' : `${value.toFixed(1)}${unit}`;
const formatWhole = (value: number | null): string => (value === null ? '–' : value.toLocaleString('en'));

function shares(counts: Counts): string {
  const total = sum(counts);
  if (total === 0) return '–';
  return Object.entries(counts)
    .sort((a, b) => b[1] - a[1])
    .map(([name, count]) => `${name} ${Math.round((100 * count) / total)} %`)
    .join('  ');
}

/** The rows that only metrics can fill. */
const OF_METRICS: readonly string[] = ['reasons', 'checks', 'requests', 'event loop', 'memory'];

/** The rows of the view, the same for a terminal and for a pipe. Without metrics it has no row of dashes. */
export function topLines(view: TopView) {
  const { facts, ...tables } = allLines(view);
  if (view.source === 'metrics') return { facts, ...tables, hint: null };
  return {
    facts: facts.filter(([name = '']) => !OF_METRICS.includes(name)),
    ...tables,
    hint: 'requests, checks, reasons, latency and memory: start gpd serve with GPD_METRICS_LISTEN=127.0.0.1:9090, and gpd top with the same',
  };
}

function allLines(view: TopView) {
  const memory = view.residentBytes === null ? '–' : `${Math.round(view.residentBytes / 1e6)} MB`;
  return {
    facts: [
      ['verdicts', `${formatDecimal(view.verdictsPerSecond)} a second`],
      ['classes', shares(view.classes)],
      ['reasons', shares(view.reasons)],
      ['checks', `${formatDecimal(view.checksPerSecond)} a second`],
      [
        'requests',
        `${formatDecimal(view.requestsPerSecond)} a second, ${formatDecimal(view.errorsPerSecond)} failed`,
      ],
      ['logs', `${formatWhole(view.ledgerEntries)} entries`],
      ['webhooks', `${formatWhole(view.webhooksWaiting)} waiting`],
      ['event loop', `p99 ${formatDecimal(view.eventLoopP99Ms, ' ms')} late`],
      ['memory', memory],
    ],
    routes: view.routes
      .slice(0, 8)
      .map(({ route, perSecond, p50Ms, p99Ms }) => [
        route,
        formatDecimal(perSecond),
        formatDecimal(p50Ms),
        formatDecimal(p99Ms),
      ]),
    groups: view.groups.map(({ group, waiting, meanSize }) => [
      group,
      formatDecimal(meanSize),
      formatWhole(waiting),
    ]),
  };
}
