import { countOpenings } from '../../consent/principals-store.ts';
import type { Database } from '../../db/db.ts';
import { countBackups } from './erase-transaction-service.ts';
import {
  consentCount,
  type ErasureTarget,
  erasesAny,
  type Keep,
  type ScopeCounts,
  withCopies,
} from './erasure.ts';
import { countRows } from './store.ts';

/** The counts of an erasure if it were asked for now. Short reads: they wait for no writer and hold none up. */
export async function planErasure(
  database: Database,
  { kid, target, keep }: { readonly kid: string; readonly target: ErasureTarget; readonly keep: Keep },
): Promise<ScopeCounts> {
  const { durables, requests, linksOf, principal } = target;
  const { read } = database;
  const rows = await countRows(read, { kid, durables, requests, linksOf, keep });
  const who = principal?.ref ?? linksOf;
  const openings = who === null ? 0 : await countOpenings(read, kid, who);
  const counts = { ...rows.counts, consent: consentCount(target, openings) };
  const erases = erasesAny(counts);
  return withCopies(counts, erases, erases || rows.waits ? await countBackups(database) : 0);
}
