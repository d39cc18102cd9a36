import { ROOT_SECRET, tenantSecretContext } from '../keys/contexts.ts';
import type { Actor, InstallationAct } from '../lib/act.ts';
import { actorRef } from '../rights/reference.ts';
import type { Store } from '../tenants/installation-files.ts';
import { deriveTenantKeys } from '../tenants/tenant.ts';
import { tenantSecrets } from '../tenants/tenant-store.ts';

/** Where an operator's name comes from: the account at the command line, or the API key. */
export type OperatorSource = 'gpd cli' | 'gpd api key';

export function operatorActor(rightsKey: Uint8Array, source: OperatorSource, name: string): Actor {
  return { role: 'operator', ref: actorRef(rightsKey, source, name) };
}

/** The person at the command line, as each tenant's records refer to them. */
export async function operatorsOf(
  { database, masterKey }: Pick<Store, 'database' | 'masterKey'>,
  account: string,
): Promise<InstallationAct['actorOf']> {
  const roots = await tenantSecrets(database, ROOT_SECRET);
  return (kid) => {
    const wrapped = roots.get(kid);
    if (wrapped === undefined) return undefined;
    try {
      const root = masterKey.unwrap(wrapped, tenantSecretContext(kid, ROOT_SECRET));
      return operatorActor(deriveTenantKeys(root).rights, 'gpd cli', account);
    } catch {
      // A damaged tenant must not stop a backup; its row says that somebody did it.
      return { role: 'operator', ref: 'unknown' };
    }
  };
}
