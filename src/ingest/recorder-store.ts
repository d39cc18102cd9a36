import type { Database } from '../db/db.ts';
import { Fault, makeGroup, oneTenant } from '../db/group-commit.ts';
import type { HotTransaction } from '../db/sql.ts';
import { prefetch } from './batch-context-store.ts';
import { makeTotals, type Totals } from './device-store.ts';
import type { KnownDevice, RecordEntry, Recorded, Recorder, Sighting } from './ports.ts';
import { type Decided, writeDecided } from './store.ts';

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
