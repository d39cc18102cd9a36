import { operatorActor } from '../audit/audit-store.ts';
import type { Act } from '../lib/act.ts';
import { isoTime } from '../lib/clock.ts';
import { TenantGone } from '../lib/errors.ts';
import type { Installation } from '../tenants/directory.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
import { listPolicies, type PurposeChange, publishPolicy, savePurposes } from './terms-store.ts';

/** Defines purposes and publishes policy versions of a tenant, for the consent API. */

interface Parts extends Pick<Installation, 'database' | 'clock'> {
  /** Reads what changed in the database before this call. */
  readonly refresh: () => Promise<void>;
}

/** Id of the key that changed it. */
function actOf({ clock }: Parts, { rightsKey }: Tenant, apiKey: string): Act {
  return { ...operatorActor(rightsKey, 'gpd api key', apiKey), at: clock(), apiKey };
}

export async function purposesOf({ database }: Pick<Parts, 'database'>, kid: string) {
  return { purposes: await createTenantStore(database).purposes(kid) };
}

/** @throws {TenantGone} */
export async function definePurposes(
  deps: Parts,
  tenant: Tenant,
  purposes: readonly PurposeChange[],
  apiKey: string,
) {
  const entries = await savePurposes(deps.database, tenant, purposes, actOf(deps, tenant, apiKey));
  if (!entries) throw new TenantGone();
  await deps.refresh();
  return { ...(await purposesOf(deps, tenant.kid)), entries };
}

export async function policiesOf({ database }: Pick<Parts, 'database'>, kid: string) {
  const policies = await listPolicies(database, kid);
  return {
    policies: policies.map((policy) => ({ ...policy, publishedAt: isoTime(policy.publishedAt) })),
  };
}

/** @throws {TenantGone} */
export async function publishNextPolicy(
  deps: Parts,
  tenant: Tenant,
  policy: { readonly text: string; readonly material: boolean },
  apiKey: string,
) {
  const published = await publishPolicy(deps.database, tenant, policy, actOf(deps, tenant, apiKey));
  if (!published) throw new TenantGone();
  await deps.refresh();
  return { ...published, publishedAt: isoTime(published.publishedAt) };
}
