import type { Purpose } from '../tenants/tenant.ts';
import { definePurpose } from './consent-store.ts';
import type { Database } from './db.ts';
import { appendOne, createLog } from './ledger-append.ts';
import { insertTenant, type NewTenant } from './tenant-store.ts';

export interface TenantRows extends NewTenant {
  /** The log begins with its genesis, and says that the first purpose was defined. */
  readonly log: { readonly origin: string; readonly vkey: string; readonly genesis: Uint8Array };
  readonly purpose: Purpose;
}

/** All of a tenant in one transaction. @returns false when the kid is taken */
export function createTenantRows(database: Database, rows: TenantRows, now: number): Promise<boolean> {
  const { kid } = rows.tenant;
  const { origin, vkey, genesis } = rows.log;
  return database.transaction(async (tx) => {
    if (!(await insertTenant(tx, rows))) return false;
    await createLog(tx, { kid, origin, vkey });
    await appendOne(tx, kid, genesis);
    await definePurpose(tx, kid, rows.purpose, now);
    return true;
  });
}
