import { markedKids, TIME_MARKS, toTimeMarks } from '../db/clock-rule-store.ts';
import type { Database } from '../db/db.ts';
import { Fault, makeGroup, oneTenant } from '../db/group-commit.ts';
import {
  type Bindings,
  type Cells,
  type Hot,
  type HotTransaction,
  hasRowLocks,
  makeReads,
  type Read,
} from '../db/sql.ts';
import { SECOND } from '../lib/clock.ts';
import type {
  DeviceQuery,
  KnownDevice,
  NonceClaim,
  RecordEntry,
  Recorded,
  Recorder,
  Sighting,
} from './ports.ts';
import {
  askedNonces,
  type Claims,
  claimFree,
  claimRows,
  type Decided,
  TAKEN,
  writeDecided,
} from './store.ts';

const WEEK_DAYS = 7;
const TOTALS_MS = 10 * SECOND;

/** One seek a day: the day comes first in the key. */
const DAYS = Array.from({ length: WEEK_DAYS }, (_, i) => `q.day - ${i}`).join(', ');

/** Each by the index of its query. */
const DEVICES: Read = {
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
const askedDevices = (queries: readonly DeviceQuery[]): Bindings[] =>
  queries.map(({ kid, durable, day, network }) => [kid, durable, day, network]);

type PairsOf = (kid: string) => number;

/**
 * What is known of each device that was asked about, in that order; `spread` counts this sighting already.
 * @param cells of {@link DEVICES}
 */
function toKnownDevices(queries: readonly DeviceQuery[], cells: readonly Cells[], pairsOf: PairsOf) {
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

const readAll = makeReads(DEVICES, TAKEN, TIME_MARKS);

type Claim = (claims: readonly NonceClaim[]) => Promise<Claims>;

/**
 * What a batch has to know before it is decided and written. On SQLite all of it by one read, as nobody else writes until the COMMIT;
 * on PostgreSQL a claim is a row.
 * @returns what is known of each sighting that has a device, in that order; `claim` is to be called once, by what was decided
 */
async function prefetch(tx: HotTransaction, totals: Totals, sightings: readonly Sighting[]) {
  const devices = sightings.flatMap(({ device }) => device ?? []);
  if (hasRowLocks(tx)) {
    const known = await lookUpDevices(tx, totals, devices);
    const claim: Claim = (decided) => claimRows(tx, decided);
    return { known, claim };
  }
  const pairsOf = await totals(tx, devices);
  const claims = sightings.map(({ claim }) => claim);
  const kids = claims.map(({ kid }) => kid);
  const asked = [askedDevices(devices), askedNonces(claims), markedKids(kids)];
  const [cells = [], taken = [], marks = []] = await readAll(tx, ...asked);
  const claim: Claim = (decided) =>
    Promise.resolve({ won: claimFree(decided, taken), marks: toTimeMarks(marks) });
  return { known: toKnownDevices(devices, cells, pairsOf), claim };
}

/** Both databases bound what one statement may carry; 9 columns × 400 rows stays far below 65,535 parameters. */
const MAX_BATCH = 400;
/** A second limit behind the lane's own, which is narrower. */
const MAX_WAITING = 2000;

type Outcome = Recorded | Fault;

function decideOn(sighting: Sighting, known: KnownDevice | null): RecordEntry | Fault {
  try {
    return sighting.decide(known);
  } catch (error) {
    return new Fault(error);
  }
}

async function recordAll(
  tx: HotTransaction,
  totals: Totals,
  sightings: readonly Sighting[],
): Promise<Outcome[]> {
  const batch = await prefetch(tx, totals, sightings);
  const { known } = batch;
  const outcomes = sightings.map((sighting) =>
    decideOn(sighting, sighting.device && (known.shift() as KnownDevice)),
  );
  const decided = outcomes.flatMap((entry, i): Decided[] => {
    const { claim } = sightings[i] as Sighting;
    return entry instanceof Fault ? [] : [{ claim, entry }];
  });
  const written = await writeDecided(tx, decided, await batch.claim(decided.map(({ claim }) => claim)));
  return outcomes.map((entry): Outcome => (entry instanceof Fault ? entry : (written.shift() as Recorded)));
}

/**
 * Group commit: one transaction of a few multi-row statements for all bundles that wait, the look-up of their devices
 * first. On SQLite the writer's connection has the pages of those devices at hand, and they are written next; a reader
 * has to read all of them again after every commit.
 * @param monotonic milliseconds that no change of the clock touches
 */
export function makeRecorder(database: Database, monotonic: () => number) {
  const totals = makeTotals(monotonic);
  const recordBatch = (sightings: readonly Sighting[]): Promise<Outcome[]> =>
    database.hotTransaction((tx) => recordAll(tx, totals, sightings));
  const group = makeGroup<Sighting, Recorded>({
    name: 'record',
    run: recordBatch,
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    ...oneTenant(database.kind, ({ claim }: Sighting) => claim.kid),
  });
  const record: Recorder['record'] = (sighting) => group.submit(sighting);
  return { record, idle: () => group.idle() };
}

/** One sighting in its own transaction, with what depends on it: what `also` throws leaves nothing. */
export type RecordAlone = (
  sighting: Sighting,
  also: (tx: HotTransaction) => Promise<void>,
) => Promise<Recorded>;

export function makeRecordAlone(database: Database, monotonic: () => number): RecordAlone {
  const totals = makeTotals(monotonic);
  return (sighting, also) =>
    database.hotTransaction(async (tx) => {
      const [outcome] = await recordAll(tx, totals, [sighting]);
      if (outcome === undefined || outcome instanceof Fault) throw outcome?.reason;
      if (typeof outcome !== 'string') await also(tx);
      return outcome;
    });
}
