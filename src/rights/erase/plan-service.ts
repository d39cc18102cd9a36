import { countOpenings } from '../../consent/append-store.ts';
import type { Database } from '../../db/engine.ts';
import { LAST_BACKUP, readMeta } from '../../db/meta-store.ts';
import {
  consentCount,
  type ErasureTarget,
  erasesAny,
  type Keep,
  type ScopeCounts,
  withCopies,
} from './erasure-service.ts';
import { countRows } from './rows-store.ts';

/** Counts the effect of an erasure for the person who has to confirm it. */

/** The counts of an erasure if it were asked for now. Short reads: they wait for no writer and hold none up. */
export async function planErasure(
  database: Database,
  { kid, target, keep }: { readonly kid: string; readonly target: ErasureTarget; readonly keep: Keep },
): Promise<ScopeCounts> {
  const { linksOf, principal } = target;
  const rows = await countRows(database.read, { ...target, kid, keep, requestRef: String });
  const principalRef = principal?.ref ?? linksOf;
  const openings = principalRef === null ? 0 : await countOpenings(database.read, kid, principalRef);
  const counts = { ...rows.counts, consent: consentCount(target, openings) };
  const erases = erasesAny(counts);
  return withCopies(counts, erases, erases || rows.heldDevices.length > 0 ? await countBackups(database) : 0);
}

/** One line for all backups: only the operator knows how many copies still exist. */
export async function countBackups(database: Database): Promise<number> {
  return (await readMeta(database, LAST_BACKUP)) === null ? 0 : 1;
}
