import { randomBytes } from 'node:crypto';
import { baseUrl, type Config } from '../config.ts';
import { createGeneration } from '../keys/generation.ts';
import { deriveTenantKeys, LEDGER_SECRET, ROOT_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import { createCheckpointBook } from '../log/checkpoint-files.ts';
import { newLog } from '../log/entries-store.ts';
import type { Store } from '../tenants/installation-files.ts';
import { createFirstPurpose } from '../tenants/purposes.ts';
import { tenantSettingsSchema } from '../tenants/settings.ts';
import { createStateMac } from '../tenants/state-mac.ts';
import { createTenantRows } from './new-tenant-store.ts';

/** Creates a tenant with its secrets, its first key and its log. */

export interface TenantRequest {
  readonly kid: string;
  readonly origins: readonly string[];
  /** The company that is responsible for the data, for the notice to people. */
  readonly controller?: string | undefined;
  /** An address where people reach it, for the same notice. */
  readonly contact?: string | undefined;
}

/**
 * Creates a tenant in one transaction: its root secret, one published seal key, its log and the purpose
 * `device-identification`. Called by `gpd init`, `gpd tenants add`, the setup page and the demo.
 * @returns the published generation, or null when the kid is taken
 */
export async function addTenant(
  { database, masterKey, serverSecret }: Store,
  config: Config,
  { kid, now, ...request }: TenantRequest & { readonly now: number },
) {
  const key = createGeneration(kid, 1, 'published', { masterKey, now });
  // The public origin of the server names the tenant's log permanently.
  const about = { kid, baseUrl: baseUrl(config), now };
  const { wrapped, ...log } = newLog({ masterKey, random: randomBytes }, about);
  const root = randomBytes(32);
  const wrappedRoot = masterKey.wrap(root, tenantSecretContext(kid, ROOT_SECRET));
  const secrets = { [ROOT_SECRET]: wrappedRoot, [LEDGER_SECRET]: wrapped };
  const settings = tenantSettingsSchema.parse({
    origins: request.origins,
    'notice.controller': request.controller,
    'notice.contact': request.contact,
  });
  // Written before the rows: a log without a line in checkpoints.log would look as if somebody had deleted
  // lines.
  const book = createCheckpointBook(config.data_dir, serverSecret);
  await book.keep({ kid, vkey: log.vkey, ...log.checkpoint }, null);
  const newTenant = { tenant: { kid, createdAt: now, settings }, secrets, key };
  const stateMac = createStateMac(kid, deriveTenantKeys(root).state);
  const rows = { ...newTenant, log, purpose: createFirstPurpose(), stateMac };
  return (await createTenantRows(database, rows, now)) ? key : null;
}
