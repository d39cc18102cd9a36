import { operatorActor } from '../audit/audit.ts';
import { writeAct } from '../audit/store.ts';
import type { Database } from '../db/engine.ts';
import { bumpTenant } from '../db/meta-store.ts';
import { cellOf } from '../db/sql.ts';
import { deriveTenantKeys, type MasterKey, ROOT_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import type { Act, InstallationAct } from '../lib/act.ts';

/**
 * Stores the wrapped secrets of tenants. The operator's
 * reference in audit rows is computed here because it needs one.
 */

/** Replaces the wrapped secret of this purpose. @returns false for an unknown tenant */
export function saveTenantSecret(database: Database, kid: string, purpose: string, wrapped: string, by: Act) {
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return false;
    await writeAct(tx, kid, by, 'key.rotated', { key: purpose });
    await tx('tenant_secrets').insert({ kid, purpose, wrapped }).onConflict(['kid', 'purpose']).merge();
    return true;
  });
}

/** @returns the wrapped secrets of one purpose, by kid */
export async function readTenantSecrets(database: Database, purpose: string) {
  const secrets = database.read('tenant_secrets').where({ purpose });
  const rows = await secrets.select<{ kid: string; wrapped: string }[]>('kid', 'wrapped');
  return new Map(rows.map(({ kid, wrapped }) => [kid, wrapped]));
}

export async function readTenantSecret(database: Database, kid: string, purpose: string) {
  return (await cellOf<string>(database.read('tenant_secrets').where({ kid, purpose }), 'wrapped')) ?? null;
}

/**
 * @returns a function that gives the reference by which a
 *   tenant's audit rows name the person at the command line
 */
export async function createOperatorLookup(
  { database, masterKey }: { readonly database: Database; readonly masterKey: MasterKey },
  account: string,
): Promise<InstallationAct['actorOf']> {
  const roots = await readTenantSecrets(database, ROOT_SECRET);
  return (kid) => {
    const wrapped = roots.get(kid);
    if (wrapped === undefined) return undefined;
    try {
      const secret = masterKey.unwrap(wrapped, tenantSecretContext(kid, ROOT_SECRET));
      return operatorActor(deriveTenantKeys(secret).rights, 'gpd cli', account);
    } catch {
      // A damaged tenant must not stop a backup; its audit row records an unknown operator.
      return { role: 'operator', ref: 'unknown' };
    }
  };
}
