import type { Knex } from 'knex';
import { bumpTenant } from '../../db/revision.ts';
import { raiseRestored } from '../../db/time-marks-store.ts';
import { earliestExpiry } from '../../ingest/freshness.ts';
import type { Cut } from './erasure-chain-service.ts';

/** What somebody ended and an older database brings back: ended again, before the first request. */

/**
 * All sessions end: some of them had ended since. Of nonces that were used since nothing is known: older bundles are `stale`.
 * @param skewMs the smallest by which any server took them
 */
export async function cutOff(tx: Knex.Transaction, now: number, skewMs: number): Promise<void> {
  await tx('console_sessions').delete();
  await tx('principal_sessions').delete();
  await raiseRestored(tx, earliestExpiry(now, skewMs));
}

/** Of the tenant that the line names, not of a later tenant with the same kid. */
async function endAgain(tx: Knex.Transaction, cut: Cut): Promise<boolean> {
  const { tenant: kid } = cut;
  const at = Date.parse(cut.at);
  if (!(await tx('tenants').where({ kid }).where('created_at', '<=', at).first('kid'))) return false;
  if (cut.event === 'apikey.revoked') {
    const row = tx('api_keys').where({ kid, id: cut.id }).whereNull('revoked_at');
    return (await row.update({ revoked_at: at })) > 0;
  }
  const row = tx('seal_keys').where({ kid, generation: cut.generation }).whereNot({ state: 'destroyed' });
  return (await row.update({ state: 'destroyed', wrapped_private: null, destroyed_at: at })) > 0;
}

export async function applyCuts(tx: Knex.Transaction, cuts: readonly Cut[]) {
  const again: Cut[] = [];
  for (const cut of cuts) if (await endAgain(tx, cut)) again.push(cut);
  for (const kid of new Set(again.map(({ tenant }) => tenant))) await bumpTenant(tx, kid);
  return {
    apiKeysRevoked: again.flatMap((cut) => (cut.event === 'apikey.revoked' ? [cut.id] : [])),
    /** KID/GENERATION. */
    sealKeysDestroyed: again.flatMap((cut) =>
      cut.event === 'seal-key.destroyed' ? [`${cut.tenant}/${cut.generation}`] : [],
    ),
  };
}
