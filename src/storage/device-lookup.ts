import type { Knex } from 'knex';
import type { DeviceQuery, KnownDevice } from '../ingest/ports.ts';
import { type Clock, SECOND } from '../lib/clock.ts';
import { askedRows, type Bindings, runHot } from './sql.ts';

const WEEK_DAYS = 7;
const TOTALS_MS = 10 * SECOND;

interface Row {
  readonly i: number;
  readonly epoch: number | null;
  readonly override_at: number | null;
  readonly today: number | null;
  readonly week: number | null;
  readonly marked: number | null;
}

const COLUMNS = { kid: 'text', durable: 'text', day: 'integer', network: 'text' } as const;
/** One seek a day: the day comes first in the key. */
const DAYS = Array.from({ length: WEEK_DAYS }, (_, i) => `q.day - ${i}`).join(', ');

const SELECT = `
  SELECT q.i AS i, s.epoch AS epoch, o.created_at AS override_at, d.networks AS today, m.day AS marked,
    (SELECT SUM(w.networks) FROM network_days w
      WHERE w.day IN (${DAYS}) AND w.kid = q.kid AND w.durable = q.durable) AS week
  FROM q
  LEFT JOIN sightings s ON s.kid = q.kid AND s.durable = q.durable
  LEFT JOIN overrides o ON o.kid = q.kid AND o.durable = q.durable
  LEFT JOIN network_days d ON d.kid = q.kid AND d.durable = q.durable AND d.day = q.day
  LEFT JOIN network_marks m
    ON m.kid = q.kid AND m.durable = q.durable AND m.day = q.day AND m.network = q.network`;

type Found = Omit<KnownDevice, 'spread'> & { readonly networksToday: number; readonly pairsOfWeek: number };

function toFound(row: Row | undefined): Found {
  const marked = row?.marked != null;
  const extra = marked ? 0 : 1;
  return {
    seen: row?.epoch != null,
    epoch: row?.epoch ?? null,
    neverAutomation: row?.override_at != null,
    marked,
    networksToday: Number(row?.today ?? 0) + extra,
    pairsOfWeek: Number(row?.week ?? 0) + extra,
  };
}

async function findDevices(knex: Knex, queries: readonly DeviceQuery[]): Promise<Found[]> {
  const asked = queries.map(({ kid, durable, day, network }): Bindings => [kid, durable, day, network]);
  const { sql, bindings } = askedRows(knex, COLUMNS, asked);
  const result = await runHot<Row>(knex, sql + SELECT, bindings);
  const rows = new Map(result.map((row) => [Number(row.i), row]));
  return queries.map((_, i) => toFound(rows.get(i)));
}

interface Pairs {
  readonly kid: string;
  readonly pairs: number;
}

/** Each tenant's pairs of the week that ends with `day`. */
async function sumPairs(knex: Knex, kids: readonly string[], day: number): Promise<Map<string, number>> {
  const sums = knex('network_totals')
    .whereIn('kid', kids)
    .where('day', '>', day - WEEK_DAYS);
  const rows = await sums.groupBy('kid').select('kid').sum<Pairs[]>({ pairs: 'pairs' });
  return new Map(rows.map(({ kid, pairs }) => [kid, Number(pairs)]));
}

/** What is known of devices before they are seen once more; `spread` counts this sighting already. */
export type LookUpDevices = (knex: Knex, queries: readonly DeviceQuery[]) => Promise<KnownDevice[]>;

/** A tenant's pairs of the week are one sum every ten seconds, for a share that moves slowly. */
export function makeDeviceLookup(clock: Clock): LookUpDevices {
  const totals = new Map<string, { readonly at: number; readonly pairs: number }>();
  return async (knex, queries) => {
    if (queries.length === 0) return [];
    const found = await findDevices(knex, queries);
    const now = clock();
    const isOld = (kid: string): boolean =>
      now - (totals.get(kid)?.at ?? Number.NEGATIVE_INFINITY) >= TOTALS_MS;
    const old = [...new Set(queries.map(({ kid }) => kid))].filter(isOld);
    if (old.length > 0) {
      const sums = await sumPairs(knex, old, queries[0]?.day ?? 0);
      for (const kid of old) totals.set(kid, { at: now, pairs: sums.get(kid) ?? 0 });
    }
    return found.map(({ seen, epoch, neverAutomation, marked, networksToday, pairsOfWeek }, i) => {
      const tenantPairsOfWeek = totals.get(queries[i]?.kid ?? '')?.pairs ?? 0;
      return {
        seen,
        epoch,
        neverAutomation,
        marked,
        spread: { networksToday, pairsOfWeek, tenantPairsOfWeek },
      };
    });
  };
}
