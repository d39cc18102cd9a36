import type { Database } from '../db/db.ts';
import { LEDGER_SECRET } from '../keys/contexts.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { newLog } from '../log/new-log.ts';
import { firstPurpose } from '../tenants/tenant.ts';
import { beginLog, withoutLog } from './new-tenant-store.ts';

/**
 * Tenants of a schema that had no ledger yet get their log: its key is wrapped by the master key, which a migration does
 * not have. One read where there is nothing to do; safe on several nodes at once.
 */
export async function completeTenants(
  database: Database,
  masterKey: MasterKey,
  baseUrl: string,
): Promise<void> {
  const kids = await withoutLog(database, LEDGER_SECRET);
  const now = Date.now();
  for (const kid of kids) {
    const { wrapped, ...log } = newLog(masterKey, { kid, baseUrl, now });
    const secret = { purpose: LEDGER_SECRET, wrapped };
    await beginLog(database, { kid, log, secret, purpose: firstPurpose() }, now);
  }
}
