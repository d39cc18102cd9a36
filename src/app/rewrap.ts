import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Knex } from 'knex';
import { type Config, ConfigError } from '../config.ts';
import { wrapContext } from '../keys/generation.ts';
import { type MasterKey, makeMasterKey } from '../keys/master-key.ts';
import { writeMeta } from '../storage/meta-store.ts';
import { bumpTenant } from '../storage/revision.ts';
import { tenantSecretContext } from './create-tenant.ts';
import {
  masterKeyPath,
  pendingKeyPath,
  readMasterKeyFile,
  replaceMasterKeyFile,
  writeMasterKeyFile,
} from './master-key-file.ts';
import { SERVER_SECRET, type Store, serverSecretContext } from './store.ts';
import { webhookSecretContext } from './webhooks.ts';

export interface RewrapResult {
  readonly secrets: number;
  readonly sealKeys: number;
  /** The file that holds the new master key. */
  readonly masterKey: string;
  readonly dryRun: boolean;
}

interface SecretRow {
  readonly kid: string;
  readonly purpose: string;
  readonly wrapped: string;
}

interface WebhookSecretRow {
  readonly kid: string;
  readonly id: string;
  readonly wrapped_secret: string;
}

interface KeyRow {
  readonly kid: string;
  readonly generation: number;
  readonly wrapped_private: string;
}

async function rewrapRows(tx: Knex.Transaction, from: MasterKey, to: MasterKey): Promise<[number, number]> {
  const kids = await tx('tenants').select<{ kid: string }[]>('kid').orderBy('kid');
  for (const { kid } of kids) await bumpTenant(tx, kid);
  const secrets = await tx('tenant_secrets').select<SecretRow[]>('kid', 'purpose', 'wrapped');
  for (const { kid, purpose, wrapped } of secrets) {
    const context = tenantSecretContext(kid, purpose);
    await tx('tenant_secrets')
      .where({ kid, purpose })
      .update({ wrapped: to.wrap(from.unwrap(wrapped, context), context) });
  }
  const keys = await tx('seal_keys')
    .whereNotNull('wrapped_private')
    .select<KeyRow[]>('kid', 'generation', 'wrapped_private');
  for (const { kid, generation, wrapped_private } of keys) {
    const context = wrapContext(kid, generation);
    const wrapped = to.wrap(from.unwrap(wrapped_private, context), context);
    await tx('seal_keys').where({ kid, generation }).update({ wrapped_private: wrapped });
  }
  const webhooks = await tx('webhooks').select<WebhookSecretRow[]>('kid', 'id', 'wrapped_secret');
  for (const { kid, id, wrapped_secret } of webhooks) {
    const context = webhookSecretContext(kid, id);
    const wrapped = to.wrap(from.unwrap(wrapped_secret, context), context);
    await tx('webhooks').where({ kid, id }).update({ wrapped_secret: wrapped });
  }
  return [secrets.length + webhooks.length + 1, keys.length];
}

/** Where the new key lies, and whether it takes the old one's place. */
function newKey(
  config: Config,
  newKeyFile: string | undefined,
): { key: Buffer; path: string; inPlace: boolean } {
  if (newKeyFile !== undefined)
    return { key: readMasterKeyFile(newKeyFile), path: newKeyFile, inPlace: false };
  const path = masterKeyPath(config);
  if (config.master_key_file !== null || config.credentialsDirectory !== null) {
    throw new ConfigError(
      'the master key lies outside the data directory: make the new one and name it with --new-key-file',
    );
  }
  return { key: randomBytes(32), path, inPlace: true };
}

/**
 * Wraps everything with another master key in one transaction. The new key is on disk before the commit, and takes the
 * old one's name after it; a start that finds both finishes what a crash left.
 */
export async function rewrap(
  store: Store,
  config: Config,
  options: { readonly dryRun: boolean; readonly newKeyFile?: string },
): Promise<RewrapResult> {
  const next = newKey(config, options.newKeyFile);
  const pending = pendingKeyPath(next.path);
  if (options.dryRun) {
    const count = async (query: Knex.QueryBuilder): Promise<number> => {
      const rows = (await query.count({ n: '*' })) as { n: number }[];
      return Number(rows[0]?.n ?? 0);
    };
    const secrets =
      (await count(store.database.read('tenant_secrets'))) +
      (await count(store.database.read('webhooks'))) +
      1;
    const sealKeys = await count(store.database.read('seal_keys').whereNotNull('wrapped_private'));
    return { secrets, sealKeys, masterKey: next.path, dryRun: true };
  }
  // Left by a crash before the commit: nothing was ever wrapped with it.
  const key = next.inPlace && existsSync(pending) ? readMasterKeyFile(pending) : next.key;
  if (next.inPlace && !existsSync(pending)) writeMasterKeyFile(pending, key);
  const to = makeMasterKey(key, randomBytes);
  const [secrets, sealKeys] = await store.database.transaction(async (tx) => {
    const counts = await rewrapRows(tx, store.masterKey, to);
    await writeMeta(tx, SERVER_SECRET, to.wrap(store.serverSecret, serverSecretContext));
    return counts;
  });
  if (next.inPlace) replaceMasterKeyFile(next.path);
  return { secrets, sealKeys, masterKey: next.path, dryRun: false };
}
