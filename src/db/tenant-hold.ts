import { TenantGone } from '../lib/errors.ts';
import { type Hot, type HotTransaction, hasRowLocks, runHot } from './sql.ts';

/**
 * Rows of a tenant are written where it is known to be there until the COMMIT: no row outlives its tenant, and none becomes
 * another's that is created later under the same kid.
 */

/** The revision of a tenant whose removal has begun: nobody holds it any more, and those who do are waited for. */
export const GOING = -1;

/**
 * Asked in the transaction that writes, which keeps the tenant from being removed until it ends.
 * @param since when the tenant was made, where that is known: a later one under its kid is another
 */
export async function holdsTenant(tx: HotTransaction, kid: string, since?: number): Promise<boolean> {
  // What a foreign key locks: a change of the tenant's settings does not wait for it.
  const lock = hasRowLocks(tx) ? 'FOR KEY SHARE' : '';
  const sql = `SELECT created_at AS since FROM tenants WHERE kid = ? AND revision > ${GOING} ${lock}`;
  const [row] = await runHot<{ since: number }>(tx, sql, [kid]);
  return row !== undefined && (since === undefined || Number(row.since) === since);
}

/** The same. @throws {TenantGone} */
export async function holdTenant(tx: HotTransaction, kid: string, since?: number): Promise<void> {
  if (!(await holdsTenant(tx, kid, since))) throw new TenantGone();
}

/** Why the log of a tenant is not there: it left with its tenant, or it was lost. */
export async function logLost(hot: Hot, kid: string): Promise<Error> {
  const rows = await runHot(hot, 'SELECT kid FROM tenants WHERE kid = ?', [kid]);
  return rows.length === 0 ? new TenantGone() : new Error('a tenant has lost its log');
}
