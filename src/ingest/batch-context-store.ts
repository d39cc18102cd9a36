import { makeReads } from '../db/reads.ts';
import { type HotTransaction, hasRowLocks } from '../db/sql.ts';
import { markedKids, TIME_MARKS, toTimeMarks } from '../db/time-marks-store.ts';
import { askedDevices, DEVICES, lookUpDevices, type Totals, toKnownDevices } from './device-store.ts';
import { askedNonces, type Claims, claimFree, claimRows, TAKEN } from './nonce-store.ts';
import type { KnownDevice, NonceClaim, Sighting } from './ports.ts';

/** What a batch has to know before it is decided and written. */
export interface BatchContext {
  /** Of each sighting that has a device, in that order. */
  readonly known: KnownDevice[];
  /** To be called once, by what was decided: what could not be decided claims nothing. */
  claim(claims: readonly NonceClaim[]): Promise<Claims>;
}

const readAll = makeReads(DEVICES, TAKEN, TIME_MARKS);

/** On SQLite all of it by one read, as nobody else writes until the COMMIT; on PostgreSQL a claim is a row. */
export async function prefetch(
  tx: HotTransaction,
  totals: Totals,
  sightings: readonly Sighting[],
): Promise<BatchContext> {
  const devices = sightings.flatMap(({ device }) => device ?? []);
  if (hasRowLocks(tx)) {
    const known = await lookUpDevices(tx, totals, devices);
    return { known, claim: (decided) => claimRows(tx, decided) };
  }
  const pairsOf = await totals(tx, devices);
  const claims = sightings.map(({ claim }) => claim);
  const kids = claims.map(({ kid }) => kid);
  const [cells = [], taken = [], marks = []] = await readAll(
    tx,
    askedDevices(devices),
    askedNonces(claims),
    markedKids(kids),
  );
  return {
    known: toKnownDevices(devices, cells, pairsOf),
    claim: (decided) => Promise.resolve({ won: claimFree(decided, taken), marks: toTimeMarks(marks) }),
  };
}
