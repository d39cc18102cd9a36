import { operatorActor } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import type { Act } from '../lib/act.ts';
import { type Clock, isoTime } from '../lib/clock.ts';
import { TenantGone } from '../lib/errors.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
import { listPolicies, type PurposeChange, publishPolicy, savePurposes } from './terms-store.ts';

/** Defines purposes and publishes policy versions of a tenant, for the consent API. */

export interface TermsDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Reads what changed in the database before this call. */
  readonly refresh: () => Promise<void>;
}

/** Names the API key that makes the change. */
function actOf({ clock }: TermsDeps, { rightsKey }: Tenant, apiKey: string): Act {
  return { ...operatorActor(rightsKey, 'gpd api key', apiKey), at: clock(), apiKey };
}

export async function purposesOf({ database }: TermsDeps, kid: string) {
  return { purposes: await createTenantStore(database).purposes(kid) };
}

/** @throws {TenantGone} */
export async function definePurposes(
  deps: TermsDeps,
  tenant: Tenant,
  purposes: readonly PurposeChange[],
  apiKey: string,
) {
  const entries = await savePurposes(deps.database, tenant, purposes, actOf(deps, tenant, apiKey));
  if (!entries) throw new TenantGone();
  await deps.refresh();
  return { ...(await purposesOf(deps, tenant.kid)), entries };
}

export async function policiesOf({ database }: TermsDeps, kid: string) {
  const policies = await listPolicies(database, kid);
  return {
    policies: policies.map((policy) => ({ ...policy, publishedAt: isoTime(policy.publishedAt) })),
  };
}

/** @throws {TenantGone} */
export async function publishNextPolicy(
  deps: TermsDeps,
  tenant: Tenant,
  policy: { readonly text: string; readonly material: boolean },
  apiKey: string,
) {
  const published = await publishPolicy(deps.database, tenant, policy, actOf(deps, tenant, apiKey));
  if (!published) throw new TenantGone();
  await deps.refresh();
  return { ...published, publishedAt: isoTime(published.publishedAt) };
}
