import { randomBytes } from 'node:crypto';
import { type Generation, makeGeneration } from '../keys/generation.ts';
import type { MasterKey, WrapContext } from '../keys/master-key.ts';
import { insertTenant } from '../storage/tenant-store.ts';
import { tenantSettingsSchema } from '../tenants/settings.ts';
import { firstPurpose } from '../tenants/tenant.ts';
import type { Store } from './store.ts';

export const ROOT_SECRET = 'root';
export const SYMMETRIC_SECRET = 'symmetric';

export function tenantSecretContext(kid: string, purpose: string): WrapContext {
  return { table: 'tenant_secrets', tenant: kid, purpose, generation: 1 };
}

function wrapTenantSecret(masterKey: MasterKey, kid: string, purpose: string, secret: Uint8Array): string {
  return masterKey.wrap(secret, tenantSecretContext(kid, purpose));
}

/**
 * A tenant with its root secret, one published seal key and the purpose `device-identification`, in one transaction.
 * @returns the published generation, or null when the kid is taken
 */
export async function createTenant(
  store: Store,
  kid: string,
  origins: readonly string[],
  now: number,
): Promise<Generation | null> {
  const key = makeGeneration(kid, 1, 'published', { masterKey: store.masterKey, now });
  const secrets = { [ROOT_SECRET]: wrapTenantSecret(store.masterKey, kid, ROOT_SECRET, randomBytes(32)) };
  const settings = tenantSettingsSchema.parse({ origins });
  const made = { tenant: { kid, createdAt: now, settings }, secrets, key, purposes: [firstPurpose()] };
  return (await store.database.transaction((tx) => insertTenant(tx, made))) ? key : null;
}
