import { hasUntoldActs, takeUntoldActs } from '../audit/untold-store.ts';
import type { Database } from '../db/engine.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { notifyStaff } from './notify-service.ts';

/** Writes to the addresses of `notify.email` about each act that weakened a safeguard of the tenant. */
export async function tellSafeguards(database: Database, tenant: Tenant): Promise<void> {
  if (!(await hasUntoldActs(database, tenant.kid))) return;
  await database.transaction(async (tx) => {
    for (const act of await takeUntoldActs(tx, tenant.kid)) await notifyStaff(tx, tenant, act);
  });
}
