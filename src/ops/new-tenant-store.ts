import { definePurpose, macTerms } from '../consent/terms-store.ts';
import type { Database } from '../db/engine.ts';
import { putCheckpoint } from '../log/checkpoint-store.ts';
import type { NewLog } from '../log/entries-store.ts';
import { appendOne, createLog } from '../log/entries-store.ts';
import { emptyTables, tableWithRows } from '../rights/tenant-rows-store.ts';
import type { Purpose } from '../tenants/purposes.ts';
import type { StateMac } from '../tenants/state-mac.ts';
import { insertTenant, type NewTenant } from '../tenants/tenant-store.ts';

/** Writes all rows of a new tenant in one transaction. */

export interface NewTenantRows extends NewTenant {
  /** The log begins with its genesis entry and the definition of the first purpose. */
  readonly log: NewLog;
  readonly purpose: Purpose;
  readonly stateMac: StateMac;
}

/**
 * Inserts all rows of a tenant in one transaction, after it has deleted what an earlier tenant with the same
 * kid left.
 * @returns false when the kid is taken
 */
export async function createTenantRows(
  database: Database,
  rows: NewTenantRows,
  now: number,
): Promise<boolean> {
  const { kid } = rows.tenant;
  const { origin, vkey, genesis, checkpoint } = rows.log;
  await emptyTables(database, kid);
  return database.transaction(async (tx) => {
    if (!(await insertTenant(tx, rows))) return false;
    const leftoverTable = await tableWithRows(tx, kid);
    if (leftoverTable !== null)
      throw new Error(
        `${leftoverTable} has rows of an earlier tenant ${kid}: stop the servers, and try again`,
      );
    await createLog(tx, { kid, origin, vkey });
    await appendOne(tx, kid, genesis, rows.stateMac);
    await putCheckpoint(tx, kid, checkpoint, null);
    await definePurpose(tx, { kid, stateMac: rows.stateMac }, rows.purpose, { at: now, ref: '' });
    await macTerms(tx, { kid, stateMac: rows.stateMac });
    return true;
  });
}
