import type { Database } from '../../db/db.ts';
import { asErased } from './erasure.ts';
import { erasuresAt, saveErasureStep } from './receipts-store.ts';
import { scrubFiles } from './scrub-store.ts';

/**
 * Rewrites the files of PostgreSQL, and completes the receipts that waited for it. Returns how many.
 * @param owner the same database, opened by the owner of the tables
 * @param kid of this tenant alone
 */
export async function scrub(
  database: Database,
  owner: Database,
  { now, kid }: { readonly now: number; readonly kid: string | undefined },
): Promise<number> {
  const { erasures } = await erasuresAt(database, ['scrub'], now);
  const waiting = erasures.filter((erasure) => kid === undefined || erasure.kid === kid);
  if (waiting.length === 0) return 0;
  await scrubFiles(owner);
  for (const erasure of waiting)
    await saveErasureStep(database, erasure, { step: 'done', scopes: asErased(erasure.scopes, true) });
  return waiting.length;
}
