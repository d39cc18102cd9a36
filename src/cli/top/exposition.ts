/**
 * Reads the part of Prometheus' text format that gpd writes, for `gpd top`
 * (https://prometheus.io/docs/instrumenting/exposition_formats/).
 */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export function parseExposition(text: string): readonly Sample[] {
  return text.split('\n').flatMap((line): Sample[] => {
    const match = LINE.exec(line);
    if (!match || line.startsWith('#')) return [];
    const labels: Record<string, string> = {};
    for (const [, name = '', value = ''] of (match[2] ?? '').matchAll(LABEL)) labels[name] = value;
    return [{ name: match[1] ?? '', labels, value: Number(match[3]) }];
  });
}

/** Sums the samples of a metric by one of its labels. */
export function sumByLabel(samples: readonly Sample[], name: string, label: string): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const sample of samples) {
    if (sample.name !== name) continue;
    const key = sample.labels[label] ?? '';
    sums[key] = (sums[key] ?? 0) + sample.value;
  }
  return sums;
}

export function totalOf(samples: readonly Sample[], name: string): number | null {
  const found = samples.filter((sample) => sample.name === name);
  return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
}

/**
 * Estimates a quantile of a histogram, interpolated within its bucket.
 * @param buckets cumulative counts by upper bound, `+Inf` among them
 */
export function quantile(buckets: Readonly<Record<string, number>>, q: number): number | null {
  const rows = Object.entries(buckets)
    .map(([bound, count]) => ({ bound: bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound), count }))
    .sort((a, b) => a.bound - b.bound);
  const total = rows.at(-1)?.count ?? 0;
  if (total <= 0) return null;
  const rank = q * total;
  let [lower, below] = [0, 0];
  for (const { bound, count } of rows) {
    if (count >= rank && count > below) {
      if (bound === Number.POSITIVE_INFINITY) return lower;
      return lower + ((bound - lower) * (rank - below)) / (count - below);
    }
    [lower, below] = [bound, count];
  }
  return lower;
}
