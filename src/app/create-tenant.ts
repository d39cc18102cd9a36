import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { type Generation, makeGeneration } from '../keys/generation.ts';
import type { MasterKey, WrapContext } from '../keys/master-key.ts';
import { genesisEntry } from '../ledger/entries.ts';
import { makeNoteSigner, type NoteSigner } from '../ledger/note.ts';
import { logOrigin } from '../ledger/origin.ts';
import { definePurpose } from '../storage/consent-store.ts';
import { appendOne, createLog } from '../storage/ledger-append.ts';
import { insertTenant } from '../storage/tenant-store.ts';
import { tenantSettingsSchema } from '../tenants/settings.ts';
import { firstPurpose } from '../tenants/tenant.ts';
import type { Store } from './store.ts';

export const ROOT_SECRET = 'root';
export const SYMMETRIC_SECRET = 'symmetric';
export const LEDGER_SECRET = 'ledger';

export function tenantSecretContext(kid: string, purpose: string): WrapContext {
  return { table: 'tenant_secrets', tenant: kid, purpose, generation: 1 };
}

function wrapTenantSecret(masterKey: MasterKey, kid: string, purpose: string, secret: Uint8Array): string {
  return masterKey.wrap(secret, tenantSecretContext(kid, purpose));
}

export interface TenantRequest {
  readonly kid: string;
  readonly origins: readonly string[];
  /** The public origin of the server, which names the tenant's log for good. */
  readonly baseUrl: string;
  readonly now: number;
}

/** The log begins with its genesis, and says that the first purpose was defined. */
async function startLog(tx: Knex.Transaction, kid: string, signer: NoteSigner, now: number): Promise<void> {
  await createLog(tx, { kid, origin: signer.name, vkey: signer.vkey });
  await appendOne(tx, kid, genesisEntry(now, signer.vkey));
  await definePurpose(tx, kid, firstPurpose(), now);
}

/**
 * A tenant with its root secret, one published seal key, a log of its own and the purpose `device-identification`, in
 * one transaction.
 * @returns the published generation, or null when the kid is taken
 */
export async function createTenant(store: Store, request: TenantRequest): Promise<Generation | null> {
  const { kid, origins, now } = request;
  const { masterKey } = store;
  const key = makeGeneration(kid, 1, 'published', { masterKey, now });
  const seed = randomBytes(32);
  const signer = makeNoteSigner(logOrigin(request.baseUrl, kid), seed);
  const secrets = {
    [ROOT_SECRET]: wrapTenantSecret(masterKey, kid, ROOT_SECRET, randomBytes(32)),
    [LEDGER_SECRET]: wrapTenantSecret(masterKey, kid, LEDGER_SECRET, seed),
  };
  const settings = tenantSettingsSchema.parse({ origins });
  const made = { tenant: { kid, createdAt: now, settings }, secrets, key };
  return store.database.transaction(async (tx) => {
    if (!(await insertTenant(tx, made))) return null;
    await startLog(tx, kid, signer, now);
    return key;
  });
}
