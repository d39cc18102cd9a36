import type { Database } from '../db/db.ts';
import { openTenantSecret, ROOT_SECRET, tenantSecretContext } from '../keys/contexts.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { deriveTenantKeys } from '../tenants/tenant.ts';
import { tenantSecrets } from '../tenants/tenant-store.ts';
import { makeStateMac } from './state-mac.ts';
import { addTenantMacs } from './state-mac-store.ts';
import type { TermsOf } from './terms-store.ts';

/** The keys of the MACs, from the wrapped roots of the tenants. */

interface Keys {
  readonly database: Database;
  readonly masterKey: MasterKey;
}

interface Root extends TermsOf {
  readonly secret: Buffer;
  readonly generation: number;
}

/** Without those that do not open: `gpd doctor` names them. */
async function roots({ database, masterKey }: Keys): Promise<readonly Root[]> {
  const wrapped = await tenantSecrets(database, ROOT_SECRET);
  return [...wrapped].flatMap(([kid, text]): Root[] => {
    try {
      const { secret, context } = openTenantSecret(masterKey, { kid, purpose: ROOT_SECRET, wrapped: text });
      const stateMac = makeStateMac(kid, deriveTenantKeys(secret).state);
      return [{ kid, stateMac, secret, generation: context.generation }];
    } catch {
      return [];
    }
  });
}

/** Of each tenant whose rows have MACs. */
export async function stateMacs(keys: Keys): Promise<ReadonlyMap<string, TermsOf>> {
  return new Map((await roots(keys)).filter(hasMacs).map((root) => [root.kid, root]));
}

const hasMacs = ({ kid, generation }: Root): boolean =>
  generation === tenantSecretContext(kid, ROOT_SECRET).generation;

/**
 * Rows of before the MACs get theirs, once, before anybody is served. That they have them is said by how the root is wrapped: who
 * writes the database can neither forge that nor take it back (ADR 0042).
 * @returns how many tenants
 */
export async function addStateMacs(keys: Keys): Promise<number> {
  const open = (await roots(keys)).filter((root) => !hasMacs(root));
  for (const { kid, stateMac, secret } of open) {
    const wrapped = keys.masterKey.wrap(secret, tenantSecretContext(kid, ROOT_SECRET));
    await addTenantMacs(keys.database, { kid, stateMac }, wrapped);
  }
  return open.length;
}
