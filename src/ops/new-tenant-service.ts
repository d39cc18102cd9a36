import { randomBytes } from 'node:crypto';
import { makeStateMac } from '../consent/state-mac.ts';
import { LEDGER_SECRET, ROOT_SECRET } from '../keys/contexts.ts';
import { type Generation, makeGeneration } from '../keys/generation.ts';
import type { CheckpointBook } from '../log/checkpoint-files.ts';
import { newLog, wrapTenantSecret } from '../log/new-log.ts';
import type { Store } from '../tenants/installation-files.ts';
import { tenantSettingsSchema } from '../tenants/settings.ts';
import { deriveTenantKeys, firstPurpose } from '../tenants/tenant.ts';
import { createTenantRows } from './new-tenant-store.ts';

export interface TenantRequest {
  readonly kid: string;
  readonly origins: readonly string[];
  /** The public origin of the server, which names the tenant's log permanently. */
  readonly baseUrl: string;
  readonly now: number;
}

/**
 * A tenant with its root secret, one published seal key, its log and the purpose `device-identification`, in
 * one transaction.
 * @returns the published generation, or null when the kid is taken
 */
export async function createTenant(
  store: Store,
  book: CheckpointBook,
  request: TenantRequest,
): Promise<Generation | null> {
  const { kid, origins, now } = request;
  const { masterKey } = store;
  const key = makeGeneration(kid, 1, 'published', { masterKey, now });
  const { wrapped, ...log } = newLog({ masterKey, random: randomBytes }, request);
  const root = randomBytes(32);
  const secrets = {
    [ROOT_SECRET]: wrapTenantSecret(masterKey, kid, ROOT_SECRET, root),
    [LEDGER_SECRET]: wrapped,
  };
  const settings = tenantSettingsSchema.parse({ origins });
  // First: a log without a line is one that something was taken from.
  await book.keep({ kid, vkey: log.vkey, ...log.checkpoint }, null);
  const made = { tenant: { kid, createdAt: now, settings }, secrets, key };
  const stateMac = makeStateMac(kid, deriveTenantKeys(root).state);
  const rows = { ...made, log, purpose: firstPurpose(), stateMac };
  return (await createTenantRows(store.database, rows, now)) ? key : null;
}
