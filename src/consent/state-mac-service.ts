import { deriveTenantKeys, ROOT_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import { tryOr } from '../lib/errors.ts';
import type { Store } from '../tenants/installation-files.ts';
import { readTenantSecrets } from '../tenants/secrets-store.ts';
import { createStateMac } from '../tenants/state-mac.ts';
import type { TermsOf } from './terms-store.ts';

/**
 * Derives each tenant's MAC keys from its wrapped root. A tenant whose root cannot be unwrapped is left out;
 * `gpd doctor` names it.
 */
export async function stateMacs({
  database,
  masterKey,
}: Pick<Store, 'database' | 'masterKey'>): Promise<ReadonlyMap<string, TermsOf>> {
  const wrapped = await readTenantSecrets(database, ROOT_SECRET);
  return new Map(
    [...wrapped].flatMap(([kid, text]): [string, TermsOf][] => {
      const root = tryOr(() => masterKey.unwrap(text, tenantSecretContext(kid, ROOT_SECRET)), null);
      return root ? [[kid, { kid, stateMac: createStateMac(kid, deriveTenantKeys(root).state) }]] : [];
    }),
  );
}
