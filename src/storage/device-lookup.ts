import type { DeviceLookup, DeviceQuery, KnownDevice } from '../ingest/ports.ts';
import { type Clock, SECOND } from '../lib/clock.ts';
import type { Database } from './db.ts';
import { makeGroup } from './group-commit.ts';
import { askedRows, type Bindings, runHot } from './sql.ts';

const MAX_BATCH = 400;
/** A net below the gate of the lane, which is narrower. */
const MAX_WAITING = 2000;
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

async function lookupBatch(database: Database, queries: readonly DeviceQuery[]): Promise<Found[]> {
  const asked = queries.map(({ kid, durable, day, network }): Bindings => [kid, durable, day, network]);
  const { sql, bindings } = askedRows(database.read, COLUMNS, asked);
  const result = await runHot<Row>(database.read, sql + SELECT, bindings);
  const rows = new Map(result.map((row) => [Number(row.i), row]));
  return queries.map((_, i) => toFound(rows.get(i)));
}

/** A tenant's pairs of the week: one sum every ten seconds, for a share that moves slowly. */
function makeTotals(database: Database, clock: Clock): (kid: string, day: number) => Promise<number> {
  const totals = new Map<string, { readonly at: number; readonly pairs: Promise<number> }>();
  const sum = async (kid: string, day: number): Promise<number> => {
    const row = await database
      .read('network_totals')
      .where({ kid })
      .where('day', '>', day - WEEK_DAYS)
      .sum<{ pairs: number | null }[]>({ pairs: 'pairs' })
      .first();
    return Number((row as { pairs: number | null } | undefined)?.pairs ?? 0);
  };
  return (kid, day) => {
    const known = totals.get(kid);
    if (known && clock() - known.at < TOTALS_MS) return known.pairs;
    const pairs = sum(kid, day);
    pairs.catch(() => totals.delete(kid));
    totals.set(kid, { at: clock(), pairs });
    return pairs;
  };
}

/** One query for all bundles that wait, in one row a bundle. */
export function makeDeviceLookup(database: Database, clock: Clock): DeviceLookup {
  const group = makeGroup<DeviceQuery, Found>({
    name: 'lookup',
    run: (queries) => lookupBatch(database, queries),
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
  });
  const totalOf = makeTotals(database, clock);
  return {
    async lookup(query) {
      const { seen, epoch, neverAutomation, marked, networksToday, pairsOfWeek } = await group.submit(query);
      const tenantPairsOfWeek = await totalOf(query.kid, query.day);
      const spread = { networksToday, pairsOfWeek, tenantPairsOfWeek };
      return { seen, epoch, neverAutomation, marked, spread };
    },
  };
}
