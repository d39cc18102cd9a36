import { operatorActor } from '../audit/audit.ts';
import { ROOT_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import type { InstallationAct } from '../lib/act.ts';
import type { Store } from './installation-files.ts';
import { deriveTenantKeys } from './tenant.ts';
import { tenantSecrets } from './tenant-store.ts';

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
      const secret = masterKey.unwrap(wrapped, tenantSecretContext(kid, ROOT_SECRET));
      return operatorActor(deriveTenantKeys(secret).rights, 'gpd cli', account);
    } catch {
      // A damaged tenant must not stop a backup; its row says that somebody did it.
      return { role: 'operator', ref: 'unknown' };
    }
  };
}
