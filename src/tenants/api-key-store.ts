import { writeAct } from '../audit/store.ts';
import type { ApiKey } from '../auth/api-key.ts';
import type { Database } from '../db/db.ts';
import { bumpTenant } from '../db/revision.ts';
import type { Act } from '../lib/act.ts';
import type { KeyScope } from '../schema/route.ts';

/** API keys of a tenant. Revoking is final; both bump the revision that running servers poll, and are in the audit log. */
export interface ApiKeyStore {
  insert(key: ApiKey, by: Act): Promise<boolean>;
  list(kid?: string): Promise<readonly ApiKey[]>;
  /** The key after the change, or null when no key has this id. */
  revoke(id: string, by: Act): Promise<ApiKey | null>;
  /** Notes that a key was used on this day; says nothing when it fails. */
  touch(kid: string, id: string, day: string): Promise<void>;
}

export interface ApiKeyRow {
  readonly kid: string;
  readonly id: string;
  readonly scope: KeyScope;
  readonly name: string;
  readonly hash: string;
  readonly created_at: number;
  readonly revoked_at: number | null;
  readonly last_used_on: string | null;
}

export function rowToApiKey(row: ApiKeyRow): ApiKey {
  const { id, kid, scope, name, hash } = row;
  const times = { createdAt: row.created_at, revokedAt: row.revoked_at, lastUsedOn: row.last_used_on };
  return { id, kid, scope, name, hash, ...times };
}

export function makeApiKeyStore(database: Database): ApiKeyStore {
  return {
    insert: (key, by) =>
      database.transaction(async (tx) => {
        if (!(await bumpTenant(tx, key.kid))) return false;
        const { kid, id, scope, name, hash } = key;
        await tx('api_keys').insert({ kid, id, scope, name, hash, created_at: key.createdAt });
        await writeAct(tx, kid, by, 'apikey.created', { id, scope });
        return true;
      }),
    async list(kid) {
      const query = database.read<ApiKeyRow>('api_keys').orderBy(['kid', 'created_at', 'id']);
      const rows = await (kid === undefined ? query : query.where({ kid }));
      return rows.map(rowToApiKey);
    },
    revoke: (id, by) =>
      database.transaction(async (tx) => {
        const row = await tx<ApiKeyRow>('api_keys').where({ id }).first();
        if (!row) return null;
        const { kid, scope } = row;
        await bumpTenant(tx, kid);
        // Under the tenant's lock: somebody else may have been first.
        const revoked = await tx('api_keys')
          .where({ id })
          .whereNull('revoked_at')
          .update({ revoked_at: by.at });
        // Those too that a node of the release before opened: it noted no key.
        await tx('principal_sessions')
          .where({ kid })
          .where((either) => void either.where({ key_id: id }).orWhereNull('key_id'))
          .delete();
        if (revoked === 1) await writeAct(tx, kid, by, 'apikey.revoked', { id, scope });
        const after = await tx<ApiKeyRow>('api_keys').where({ id }).first();
        return after ? rowToApiKey(after) : null;
      }),
    async touch(kid, id, day) {
      await database.transaction((tx) => tx('api_keys').where({ kid, id }).update({ last_used_on: day }));
    },
  };
}
