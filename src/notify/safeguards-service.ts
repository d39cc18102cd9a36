import { hasUntoldActs, takeUntoldActs } from '../audit/untold-store.ts';
import type { Database } from '../db/engine.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { readSettings } from '../tenants/tenant-store.ts';
import { notifyStaff } from './notify-service.ts';

/** Writes to the addresses of `notify.email` about each act that weakened a safeguard of the tenant. */
export async function tellSafeguards(database: Database, tenant: Tenant): Promise<void> {
  if (!(await hasUntoldActs(database, tenant.kid))) return;
  await database.transaction(async (tx) => {
    const acts = await takeUntoldActs(tx, tenant.kid);
    if (acts.length === 0) return;
    // This process may not have read yet that an act changed notify.email: it would be told to nobody.
    const currentTenant = { ...tenant, settings: await readSettings(tx, tenant.kid) };
    for (const act of acts) await notifyStaff(tx, currentTenant, act);
  });
}
