import { randomBytes } from 'node:crypto';
import { baseUrl, type Config } from '../config.ts';
import { createGeneration } from '../keys/generation.ts';
import { deriveTenantKeys, LEDGER_SECRET, ROOT_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import { createCheckpointBook } from '../log/checkpoint-files.ts';
import { newLog } from '../log/entries.ts';
import type { Store } from '../tenants/installation-files.ts';
import { createFirstPurpose } from '../tenants/purposes.ts';
import { tenantSettingsSchema } from '../tenants/settings.ts';
import { createStateMac } from '../tenants/state-mac.ts';
import { createTenantRows } from './new-tenant-store.ts';

export interface TenantRequest {
  readonly kid: string;
  readonly origins: readonly string[];
  /** Who is responsible, and how people reach them: the notice to people. */
  readonly controller?: string | undefined;
  readonly contact?: string | undefined;
}

/**
 * A tenant with its root secret, one published seal key, its log and the purpose `device-identification`, in
 * one transaction.
 * @returns the published generation, or null when the kid is taken
 */
export async function addTenant(
  { database, masterKey, serverSecret }: Store,
  config: Config,
  { kid, now, ...given }: TenantRequest & { readonly now: number },
) {
  const key = createGeneration(kid, 1, 'published', { masterKey, now });
  // The public origin of the server names the tenant's log permanently.
  const about = { kid, baseUrl: baseUrl(config), now };
  const { wrapped, ...log } = newLog({ masterKey, random: randomBytes }, about);
  const root = randomBytes(32);
  const wrappedRoot = masterKey.wrap(root, tenantSecretContext(kid, ROOT_SECRET));
  const secrets = { [ROOT_SECRET]: wrappedRoot, [LEDGER_SECRET]: wrapped };
  const settings = tenantSettingsSchema.parse({
    origins: given.origins,
    'notice.controller': given.controller,
    'notice.contact': given.contact,
  });
  // First: a log without a line is one that something was taken from.
  const book = createCheckpointBook(config.data_dir, serverSecret);
  await book.keep({ kid, vkey: log.vkey, ...log.checkpoint }, null);
  const made = { tenant: { kid, createdAt: now, settings }, secrets, key };
  const stateMac = createStateMac(kid, deriveTenantKeys(root).state);
  const rows = { ...made, log, purpose: createFirstPurpose(), stateMac };
  return (await createTenantRows(database, rows, now)) ? key : null;
}
