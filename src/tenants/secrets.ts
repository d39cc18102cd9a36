import { operatorActor } from '../audit/audit.ts';
import { writeAct } from '../audit/store.ts';
import type { Database } from '../db/engine.ts';
import { bumpTenant } from '../db/meta-store.ts';
import { cellOf } from '../db/sql.ts';
import { deriveTenantKeys, type MasterKey, ROOT_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import type { Act, InstallationAct } from '../lib/act.ts';

/** The wrapped secrets of tenants, and who acts under them at the command line. */

/** Puts a wrapped secret in place of an older one of the same purpose. */
export function saveTenantSecret(database: Database, kid: string, purpose: string, wrapped: string, by: Act) {
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return false;
    await writeAct(tx, kid, by, 'key.rotated', { key: purpose });
    await tx('tenant_secrets').insert({ kid, purpose, wrapped }).onConflict(['kid', 'purpose']).merge();
    return true;
  });
}

/** The secrets of one purpose, by tenant. */
export async function tenantSecrets(database: Database, purpose: string) {
  const secrets = database.read('tenant_secrets').where({ purpose });
  const rows = await secrets.select<{ kid: string; wrapped: string }[]>('kid', 'wrapped');
  return new Map(rows.map(({ kid, wrapped }) => [kid, wrapped]));
}

export async function readTenantSecret(database: Database, kid: string, purpose: string) {
  return (await cellOf<string>(database.read('tenant_secrets').where({ kid, purpose }), 'wrapped')) ?? null;
}

/** The person at the command line, as each tenant's records refer to them. */
export async function operatorsOf(
  { database, masterKey }: { readonly database: Database; readonly masterKey: MasterKey },
  account: string,
): Promise<InstallationAct['actorOf']> {
  const roots = await tenantSecrets(database, ROOT_SECRET);
  return (kid) => {
    const wrapped = roots.get(kid);
    if (wrapped === undefined) return undefined;
    try {
      const secret = masterKey.unwrap(wrapped, tenantSecretContext(kid, ROOT_SECRET));
      return operatorActor(deriveTenantKeys(secret).rights, 'gpd cli', account);
    } catch {
      // A damaged tenant must not stop a backup; its row says that somebody did it.
      return { role: 'operator', ref: 'unknown' };
    }
  };
}
