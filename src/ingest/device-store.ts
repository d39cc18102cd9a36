import { type Cells, makeReads, type Read } from '../db/reads.ts';
import type { Bindings, Hot } from '../db/sql.ts';
import { SECOND } from '../lib/clock.ts';
import type { DeviceQuery, KnownDevice } from './ports.ts';

const WEEK_DAYS = 7;
const TOTALS_MS = 10 * SECOND;

/** One seek a day: the day comes first in the key. */
const DAYS = Array.from({ length: WEEK_DAYS }, (_, i) => `q.day - ${i}`).join(', ');

/** Each by the index of its query. */
export const DEVICES: Read = {
  about: { kid: 'text', durable: 'text', day: 'integer', network: 'text' },
  sql: `
  SELECT q.i AS i, s.first_at AS first_at, o.created_at AS override_at, d.networks AS today, m.day AS marked,
    (SELECT SUM(w.networks) FROM network_days w
      WHERE w.day IN (${DAYS}) AND w.kid = q.kid AND w.durable = q.durable) AS week
  FROM q
  LEFT JOIN sightings s ON s.kid = q.kid AND s.durable = q.durable
  LEFT JOIN overrides o ON o.kid = q.kid AND o.durable = q.durable
  LEFT JOIN network_days d ON d.kid = q.kid AND d.durable = q.durable AND d.day = q.day
  LEFT JOIN network_marks m
    ON m.kid = q.kid AND m.durable = q.durable AND m.day = q.day AND m.network = q.network`,
  columns: ['i', 'first_at', 'override_at', 'today', 'marked', 'week'],
};

/** @param pairs what the device's tenant counted this week */
function toKnown([, firstAt, overrideAt, today, marked, week]: Cells, pairs: number): KnownDevice {
  const extra = marked == null ? 1 : 0;
  return {
    seen: firstAt != null,
    neverAutomation: overrideAt != null,
    marked: marked != null,
    spread: {
      networksToday: Number(today ?? 0) + extra,
      pairsOfWeek: Number(week ?? 0) + extra,
      tenantPairsOfWeek: pairs,
    },
  };
}

/** Each tenant's pairs of the week that ends with a day. */
const readSums = makeReads({
  about: { kid: 'text', day: 'integer' },
  sql: `SELECT q.kid AS kid, (SELECT SUM(t.pairs) FROM network_totals t
      WHERE t.kid = q.kid AND t.day > q.day - ${WEEK_DAYS}) AS pairs FROM q`,
  columns: ['kid', 'pairs'],
});

/** What {@link DEVICES} is asked about. */
export const askedDevices = (queries: readonly DeviceQuery[]): Bindings[] =>
  queries.map(({ kid, durable, day, network }) => [kid, durable, day, network]);

type PairsOf = (kid: string) => number;

/**
 * What is known of each device that was asked about, in that order; `spread` counts this sighting already.
 * @param cells of {@link DEVICES}
 */
export function toKnownDevices(queries: readonly DeviceQuery[], cells: readonly Cells[], pairsOf: PairsOf) {
  const found = new Map(cells.map((row) => [row[0], row]));
  return queries.map(({ kid }, i) => toKnown(found.get(i) ?? [], pairsOf(kid)));
}

export type Totals = (hot: Hot, queries: readonly DeviceQuery[]) => Promise<PairsOf>;

/**
 * A tenant's pairs of the week are one sum every ten seconds, for a share that moves slowly.
 * @param monotonic milliseconds that no clock change touches
 */
export function makeTotals(monotonic: () => number): Totals {
  const totals = new Map<string, { readonly at: number; readonly pairs: number }>();
  const pairsOf: PairsOf = (kid) => totals.get(kid)?.pairs ?? 0;
  return async (hot, queries) => {
    const now = monotonic();
    const isOld = (kid: string): boolean =>
      now - (totals.get(kid)?.at ?? Number.NEGATIVE_INFINITY) >= TOTALS_MS;
    const old = [...new Set(queries.map(({ kid }) => kid))].filter(isOld);
    if (old.length > 0) {
      const day = queries[0]?.day ?? 0;
      const asked = old.map((kid): Bindings => [kid, day]);
      const [sums = []] = await readSums(hot, asked);
      for (const [kid, pairs] of sums) totals.set(String(kid), { at: now, pairs: Number(pairs ?? 0) });
    }
    return pairsOf;
  };
}

const readDevices = makeReads(DEVICES);

export async function lookUpDevices(hot: Hot, totals: Totals, queries: readonly DeviceQuery[]) {
  const pairsOf = await totals(hot, queries);
  const [cells = []] = await readDevices(hot, askedDevices(queries));
  return toKnownDevices(queries, cells, pairsOf);
}
