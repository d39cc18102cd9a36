import type { Knex } from 'knex';
import { writeAct } from '../audit/store.ts';
import type { ApiKey } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import { bumpTenant } from '../db/meta-store.ts';
import { type Columns, fromColumns, toColumns } from '../db/sql.ts';
import type { Act } from '../lib/act.ts';

export type ApiKeyRow = Columns<ApiKey>;

async function insertKey(tx: Knex.Transaction, key: ApiKey, by: Act): Promise<boolean> {
  const { kid, id, scope } = key;
  if (!(await bumpTenant(tx, kid))) return false;
  await tx('api_keys').insert(toColumns(key));
  await writeAct(tx, kid, by, 'apikey.created', { id, scope });
  return true;
}

async function revokeKey(tx: Knex.Transaction, id: string, by: Act): Promise<ApiKey | null> {
  const row = await tx<ApiKeyRow>('api_keys').where({ id }).first();
  if (!row) return null;
  const { kid, scope } = row;
  await bumpTenant(tx, kid);
  // Under the tenant's lock: somebody else may have been first.
  const revoked = await tx('api_keys').where({ id }).whereNull('revoked_at').update({ revoked_at: by.at });
  await tx('principal_sessions').where({ kid, key_id: id }).delete();
  if (revoked === 1) await writeAct(tx, kid, by, 'apikey.revoked', { id, scope });
  const after = await tx<ApiKeyRow>('api_keys').where({ id }).first();
  return after ? fromColumns<ApiKey>(after as ApiKeyRow) : null;
}

/** API keys of a tenant. Revoking is final; both bump the revision that running servers poll, and are in the audit log. */
export function createApiKeyStore(database: Database) {
  return {
    insert: (key: ApiKey, by: Act): Promise<boolean> => database.transaction((tx) => insertKey(tx, key, by)),
    /** One key in place of another. @returns false when that one was revoked already */
    replace: (old: string, key: ApiKey, by: Act): Promise<boolean> =>
      database.transaction(async (tx) => {
        // Under the tenant's lock: somebody else may have been first.
        if (!(await bumpTenant(tx, key.kid))) return false;
        const inUse = await tx<ApiKeyRow>('api_keys').where({ id: old }).whereNull('revoked_at').first();
        if (!inUse) return false;
        await insertKey(tx, key, by);
        await revokeKey(tx, old, by);
        return true;
      }),
    async list(kid?: string): Promise<readonly ApiKey[]> {
      const query = database.read<ApiKeyRow>('api_keys').orderBy(['kid', 'created_at', 'id']);
      const rows = await (kid === undefined ? query : query.where({ kid }));
      return rows.map((row: ApiKeyRow) => fromColumns<ApiKey>(row));
    },
    /** The key after the change, or null when no key has this id. */
    revoke: (id: string, by: Act): Promise<ApiKey | null> =>
      database.transaction((tx) => revokeKey(tx, id, by)),
    /** Notes that a key was used on this day. */
    async touch(kid: string, id: string, day: string): Promise<void> {
      await database.transaction((tx) => tx('api_keys').where({ kid, id }).update({ last_used_on: day }));
    },
  };
}
