import type { Stock, Traffic } from '../../ops/metrics/stock-store.ts';
import { byLabel, quantile, type Sample, totalOf } from './exposition.ts';

/** What `gpd top` shows: two readings, and what happened between them. */

export interface Reading {
  readonly at: number;
  readonly samples: readonly Sample[];
}

/** Null is what the database alone does not tell. */
export type TopView = ReturnType<typeof viewOf> | ReturnType<typeof viewOfCounts>;

type Counts = Readonly<Record<string, number>>;

/** A counter that went back belongs to a server that was restarted: it counts from zero. */
function delta(before: Counts, after: Counts): Record<string, number> {
  const rows = Object.entries(after).map(([key, value]) => {
    const old = before[key] ?? 0;
    return [key, value >= old ? value - old : value] as const;
  });
  return Object.fromEntries(rows.filter(([, value]) => value > 0));
}

const sum = (counts: Counts): number => Object.values(counts).reduce((total, value) => total + value, 0);

function ofRoute(samples: readonly Sample[], route: string): readonly Sample[] {
  return samples.filter(({ labels }) => labels['route'] === route);
}

export function viewOf(before: Reading, after: Reading) {
  const seconds = Math.max(0.001, (after.at - before.at) / 1000);
  const between = (name: string, label: string): Record<string, number> =>
    delta(byLabel(before.samples, name, label), byLabel(after.samples, name, label));
  const statuses = between('gpd_requests_total', 'status');
  const failed = Object.entries(statuses).filter(([status]) => status.startsWith('5'));
  const requests = between('gpd_requests_total', 'route');
  const routes = Object.entries(requests)
    .map(([route, count]) => {
      const name = 'gpd_request_seconds_bucket';
      const buckets = delta(
        byLabel(ofRoute(before.samples, route), name, 'le'),
        byLabel(ofRoute(after.samples, route), name, 'le'),
      );
      const ms = (q: number): number | null => {
        const value = quantile(buckets, q);
        return value === null ? null : value * 1000;
      };
      return { route, perSecond: count / seconds, p50Ms: ms(0.5), p99Ms: ms(0.99) };
    })
    .sort((a, b) => b.perSecond - a.perSecond);
  const items = between('gpd_batch_size_sum', 'group');
  const batches = between('gpd_batch_size_count', 'group');
  const waiting = byLabel(after.samples, 'gpd_batch_waiting', 'group');
  const lag = totalOf(after.samples, 'nodejs_eventloop_lag_p99_seconds');
  const classes = between('gpd_verdicts_total', 'class');
  return {
    source: 'metrics' as const,
    seconds,
    requestsPerSecond: sum(requests) / seconds,
    errorsPerSecond: sum(Object.fromEntries(failed)) / seconds,
    verdictsPerSecond: sum(classes) / seconds,
    checksPerSecond: sum(between('gpd_consent_checks_total', 'reason')) / seconds,
    /** Of the verdicts in between; without metrics of the last day. */
    classes,
    reasons: between('gpd_ingest_total', 'reason'),
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

/** Without metrics: what the database tells. */
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

const one = (value: number | null, unit = ''): string =>
  value === null ? '–' : `${value.toFixed(1)}${unit}`;
const whole = (value: number | null): string => (value === null ? '–' : value.toLocaleString('en'));

function shares(counts: Counts): string {
  const total = sum(counts);
  if (total === 0) return '–';
  return Object.entries(counts)
    .sort((a, b) => b[1] - a[1])
    .map(([name, count]) => `${name} ${Math.round((100 * count) / total)} %`)
    .join('  ');
}

/** The same words on a terminal that is redrawn and in a pipe. */
export function topLines(view: TopView) {
  const memory = view.residentBytes === null ? '–' : `${Math.round(view.residentBytes / 1e6)} MB`;
  return {
    facts: [
      ['verdicts', `${one(view.verdictsPerSecond)} a second`],
      ['classes', shares(view.classes)],
      ['reasons', shares(view.reasons)],
      ['checks', `${one(view.checksPerSecond)} a second`],
      ['requests', `${one(view.requestsPerSecond)} a second, ${one(view.errorsPerSecond)} failed`],
      ['logs', `${whole(view.ledgerEntries)} entries`],
      ['webhooks', `${whole(view.webhooksWaiting)} waiting`],
      ['event loop', `p99 ${one(view.eventLoopP99Ms, ' ms')} late`],
      ['memory', memory],
    ],
    routes: view.routes
      .slice(0, 8)
      .map(({ route, perSecond, p50Ms, p99Ms }) => [route, one(perSecond), one(p50Ms), one(p99Ms)]),
    groups: view.groups.map(({ group, waiting, meanSize }) => [group, one(meanSize), whole(waiting)]),
  };
}
