import type { Knex } from 'knex';
import { writeActForAll } from '../audit/store.ts';
import type { Database } from '../db/db.ts';
import { writeMeta } from '../db/meta-store.ts';
import { bumpTenant } from '../db/revision.ts';
import {
  archiveSignerContext,
  openTenantSecret,
  SERVER_SECRET,
  serverSecretContext,
  webhookSecretContext,
} from '../keys/contexts.ts';
import { wrapContext } from '../keys/generation.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { InstallationAct } from '../lib/act.ts';
import { hasArchiveSigner, rewrapArchiveSigner } from '../rights/dsar/archive-signer-store.ts';

/** Everything that the master key wraps, wrapped anew in one transaction. */

export interface RewrapCounts {
  readonly secrets: number;
  readonly sealKeys: number;
}

interface SecretRow {
  readonly kid: string;
  readonly purpose: string;
  readonly wrapped: string;
}

interface KeyRow {
  readonly kid: string;
  readonly generation: number;
  readonly wrapped_private: string;
}

interface WebhookRow {
  readonly kid: string;
  readonly id: string;
  readonly wrapped_secret: string;
}

type Rewrap = (wrapped: string, context: Parameters<MasterKey['wrap']>[1]) => string;

async function rewrapSecrets(tx: Knex.Transaction, from: MasterKey, to: MasterKey): Promise<number> {
  const secrets = await tx('tenant_secrets').select<SecretRow[]>('kid', 'purpose', 'wrapped');
  for (const row of secrets) {
    const { secret, context } = openTenantSecret(from, row);
    const { kid, purpose } = row;
    await tx('tenant_secrets')
      .where({ kid, purpose })
      .update({ wrapped: to.wrap(secret, context) });
  }
  return secrets.length;
}

async function rewrapWebhooks(tx: Knex.Transaction, rewrap: Rewrap): Promise<number> {
  const webhooks = await tx('webhooks').select<WebhookRow[]>('kid', 'id', 'wrapped_secret');
  for (const { kid, id, wrapped_secret } of webhooks) {
    const next = rewrap(wrapped_secret, webhookSecretContext(kid, id));
    await tx('webhooks').where({ kid, id }).update({ wrapped_secret: next });
  }
  return webhooks.length;
}

async function rewrapSealKeys(tx: Knex.Transaction, rewrap: Rewrap): Promise<number> {
  const keys = await tx('seal_keys')
    .whereNotNull('wrapped_private')
    .select<KeyRow[]>('kid', 'generation', 'wrapped_private');
  for (const { kid, generation, wrapped_private } of keys) {
    const next = rewrap(wrapped_private, wrapContext(kid, generation));
    await tx('seal_keys').where({ kid, generation }).update({ wrapped_private: next });
  }
  return keys.length;
}

export function rewrapAll(
  database: Database,
  from: MasterKey,
  to: MasterKey,
  serverSecret: Uint8Array,
  by: InstallationAct,
): Promise<RewrapCounts> {
  const rewrap: Rewrap = (wrapped, context) => to.wrap(from.unwrap(wrapped, context), context);
  return database.transaction(async (tx) => {
    const kids = await tx('tenants').select<{ kid: string }[]>('kid').orderBy('kid');
    for (const { kid } of kids) await bumpTenant(tx, kid);
    const secrets = (await rewrapSecrets(tx, from, to)) + (await rewrapWebhooks(tx, rewrap));
    const sealKeys = await rewrapSealKeys(tx, rewrap);
    const signers = await rewrapArchiveSigner(tx, (wrapped) => rewrap(wrapped, archiveSignerContext));
    await writeMeta(tx, SERVER_SECRET, to.wrap(serverSecret, serverSecretContext));
    await writeActForAll(tx, by, 'key.rotated', { key: 'master' });
    return { secrets: secrets + signers + 1, sealKeys };
  });
}

/** How many there are, for `--dry-run`. */
export async function countWrapped(database: Database): Promise<RewrapCounts> {
  const count = async (query: Knex.QueryBuilder): Promise<number> => {
    const rows = (await query.count({ n: '*' })) as { n: number }[];
    return Number(rows[0]?.n ?? 0);
  };
  const { read } = database;
  const signers = (await hasArchiveSigner(database)) ? 1 : 0;
  const secrets = (await count(read('tenant_secrets'))) + (await count(read('webhooks'))) + signers + 1;
  return { secrets, sealKeys: await count(read('seal_keys').whereNotNull('wrapped_private')) };
}
