import type { MetricObjectWithValues, MetricValue, MetricValueWithName } from 'prom-client';

/**
 * The registry as an ExportMetricsServiceRequest of OTLP 1.x in its JSON form: 64-bit numbers are texts, times are
 * nanoseconds, sums are cumulative since the process began. The labels are those of /metrics: of closed sets, nobody's.
 */

export type Metric = MetricObjectWithValues<MetricValue<string> | MetricValueWithName<string>>;

export interface OtlpContext {
  readonly version: string;
  /** Tells the processes of one service apart; made anew at each start. */
  readonly instance: string;
  readonly startedAt: number;
  readonly now: number;
}

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue: string };
}

/** aggregationTemporality of the protocol. */
const CUMULATIVE = 2;

const nanos = (ms: number): string => `${Math.round(ms)}000000`;

function attributes(labels: object): Attribute[] {
  return Object.entries(labels).map(([key, value]) => ({ key, value: { stringValue: String(value) } }));
}

interface Times {
  readonly startTimeUnixNano: string;
  readonly timeUnixNano: string;
}

function numberPoints(metric: Metric, times: Times): object[] {
  return metric.values
    .filter(({ value }) => Number.isFinite(value))
    .map(({ labels, value }) => ({ attributes: attributes(labels), ...times, asDouble: value }));
}

interface Series {
  readonly labels: object;
  /** Upper bound → how many are at most that, as Prometheus counts. */
  readonly atMost: Map<number, number>;
  sum: number;
  count: number;
}

/** prom-client writes a histogram as the lines of its text: a bucket, the sum and the count each for itself. */
function seriesOf(metric: Metric): Iterable<Series> {
  const all = new Map<string, Series>();
  for (const each of metric.values) {
    const { labels, value } = each;
    const metricName = 'metricName' in each ? (each.metricName ?? '') : '';
    const { le, ...own } = labels as Record<string, string | number>;
    const key = JSON.stringify(own);
    const series = all.get(key) ?? { labels: own, atMost: new Map<number, number>(), sum: 0, count: 0 };
    all.set(key, series);
    if (metricName.endsWith('_sum')) series.sum = value;
    else if (metricName.endsWith('_count')) series.count = value;
    else if (le !== undefined && le !== '+Inf') series.atMost.set(Number(le), value);
  }
  return all.values();
}

function histogramPoint({ labels, atMost, sum, count }: Series, times: Times): object {
  const bounds = [...atMost.keys()].sort((a, b) => a - b);
  const cumulative = [...bounds.map((bound) => atMost.get(bound) ?? 0), count];
  return {
    attributes: attributes(labels),
    ...times,
    count: String(count),
    sum,
    bucketCounts: cumulative.map((value, i) => String(value - (cumulative[i - 1] ?? 0))),
    explicitBounds: bounds,
  };
}

function dataOf(metric: Metric, times: Times): object | null {
  // As a text: prom-client's own enum has numbers, its JSON has names.
  switch (String(metric.type)) {
    case 'counter':
      return {
        sum: {
          aggregationTemporality: CUMULATIVE,
          isMonotonic: true,
          dataPoints: numberPoints(metric, times),
        },
      };
    case 'gauge':
      return { gauge: { dataPoints: numberPoints(metric, times) } };
    case 'histogram': {
      const dataPoints = [...seriesOf(metric)].map((series) => histogramPoint(series, times));
      return { histogram: { aggregationTemporality: CUMULATIVE, dataPoints } };
    }
    default:
      return null;
  }
}

export function otlpRequest(metrics: readonly Metric[], context: OtlpContext): object {
  const { version, instance, startedAt, now } = context;
  const times = { startTimeUnixNano: nanos(startedAt), timeUnixNano: nanos(now) };
  const resource = { 'service.name': 'gpd', 'service.version': version, 'service.instance.id': instance };
  const told = metrics.flatMap((metric) => {
    const data = dataOf(metric, times);
    return data === null ? [] : [{ name: metric.name, description: metric.help, ...data }];
  });
  return {
    resourceMetrics: [
      {
        resource: { attributes: attributes(resource) },
        scopeMetrics: [{ scope: { name: 'gpd', version }, metrics: told }],
      },
    ],
  };
}
