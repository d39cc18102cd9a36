import type { Knex } from 'knex';
import { writeAct } from '../audit/audit-store.ts';
import type { ApiKey } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import { bumpTenant } from '../db/meta-store.ts';
import { type Columns, fromColumns, requireNone, toColumns } from '../db/sql.ts';
import type { Act } from '../lib/act.ts';

/**
 * The API keys of tenants (contract section 7). Each change is audited
 * and raises the revision that running servers poll. Revocation is final.
 */

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
  // This is read under the tenant's lock: someone else may have revoked the key first.
  const revoked = await tx('api_keys').where({ id }).whereNull('revoked_at').update({ revoked_at: by.at });
  await requireNone(tx, tx('api_keys').where({ id }).whereNull('revoked_at'), `API key ${id} is not revoked`);
  const sessions = tx('principal_sessions').where({ kid, key_id: id });
  await sessions.clone().delete();
  await requireNone(tx, sessions, `API key ${id} is not revoked, as its sessions remain`);
  if (revoked === 1) await writeAct(tx, kid, by, 'apikey.revoked', { id, scope });
  const after = await tx<ApiKeyRow>('api_keys').where({ id }).first();
  return after ? fromColumns<ApiKey>(after as ApiKeyRow) : null;
}

export function createApiKeyStore(database: Database) {
  return {
    insert: (key: ApiKey, by: Act): Promise<boolean> => database.transaction((tx) => insertKey(tx, key, by)),
    /** Inserts `key` and revokes the other one. @returns false if the other one was already revoked */
    replace: (replacedId: string, key: ApiKey, by: Act): Promise<boolean> =>
      database.transaction(async (tx) => {
        // This is read under the tenant's lock: someone else may have revoked the key first.
        if (!(await bumpTenant(tx, key.kid))) return false;
        const inUse = await tx<ApiKeyRow>('api_keys')
          .where({ id: replacedId })
          .whereNull('revoked_at')
          .first();
        if (!inUse) return false;
        await insertKey(tx, key, by);
        await revokeKey(tx, replacedId, by);
        return true;
      }),
    async list(kid?: string): Promise<readonly ApiKey[]> {
      const query = database.read<ApiKeyRow>('api_keys').orderBy(['kid', 'created_at', 'id']);
      const rows = await (kid === undefined ? query : query.where({ kid }));
      return rows.map((row: ApiKeyRow) => fromColumns<ApiKey>(row));
    },
    /** @returns the key after the change; null if no key has this id */
    revoke: (id: string, by: Act): Promise<ApiKey | null> =>
      database.transaction((tx) => revokeKey(tx, id, by)),
    /** @param day UTC, as YYYY-MM-DD */
    async noteUse(kid: string, id: string, day: string): Promise<void> {
      await database.transaction((tx) => tx('api_keys').where({ kid, id }).update({ last_used_on: day }));
    },
  };
}
