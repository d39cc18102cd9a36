import { markedKids, TIME_MARKS, toTimeMarks } from '../db/clock-rule-store.ts';
import { makeReads } from '../db/reads.ts';
import { type HotTransaction, hasRowLocks } from '../db/sql.ts';
import { askedDevices, DEVICES, lookUpDevices, type Totals, toKnownDevices } from './device-store.ts';
import { askedNonces, type Claims, claimFree, claimRows, TAKEN } from './nonce-store.ts';
import type { NonceClaim, Sighting } from './ports.ts';

const readAll = makeReads(DEVICES, TAKEN, TIME_MARKS);

type Claim = (claims: readonly NonceClaim[]) => Promise<Claims>;

/**
 * What a batch has to know before it is decided and written. On SQLite all of it by one read, as nobody else writes until the COMMIT;
 * on PostgreSQL a claim is a row.
 * @returns what is known of each sighting that has a device, in that order; `claim` is to be called once, by what was decided
 */
export async function prefetch(tx: HotTransaction, totals: Totals, sightings: readonly Sighting[]) {
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
