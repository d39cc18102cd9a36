import { writeAct } from '../audit/store.ts';
import type { Database } from '../db/db.ts';
import { bumpTenant } from '../db/revision.ts';
import type { Generation, KeyState } from '../keys/generation.ts';
import type { KeyPlan } from '../keys/rotate.ts';
import type { Act } from '../lib/act.ts';

/**
 * Where generations lie. `change` reads a tenant's generations, hands them to the pure plan and writes what it says, all
 * in one transaction that excludes other writers of the same tenant; running servers see it within 5 s. A refused plan
 * writes nothing. What was published or destroyed is in the audit log. Unknown tenant: null.
 */
export interface SealKeyStore {
  list(kid: string): Promise<readonly Generation[]>;
  change(kid: string, plan: (keys: readonly Generation[]) => KeyPlan, by: Act): Promise<KeyPlan | null>;
}

export interface SealKeyRow {
  readonly kid: string;
  readonly generation: number;
  readonly state: KeyState;
  readonly public_key: string;
  readonly wrapped_private: string | null;
  readonly created_at: number;
  readonly published_at: number | null;
  readonly retires_at: number | null;
  readonly destroyed_at: number | null;
}

export function rowToGeneration(row: SealKeyRow): Generation {
  return {
    kid: row.kid,
    generation: row.generation,
    state: row.state,
    publicKey: row.public_key,
    wrappedPrivate: row.wrapped_private,
    createdAt: row.created_at,
    publishedAt: row.published_at,
    retiresAt: row.retires_at,
    destroyedAt: row.destroyed_at,
  };
}

export function generationToRow(key: Generation): SealKeyRow {
  return {
    kid: key.kid,
    generation: key.generation,
    state: key.state,
    public_key: key.publicKey,
    wrapped_private: key.wrappedPrivate,
    created_at: key.createdAt,
    published_at: key.publishedAt,
    retires_at: key.retiresAt,
    destroyed_at: key.destroyedAt,
  };
}

export function makeSealKeyStore(database: Database): SealKeyStore {
  return {
    async list(kid) {
      const rows = await database.read<SealKeyRow>('seal_keys').where({ kid }).orderBy('generation');
      return rows.map(rowToGeneration);
    },
    change: (kid, plan, by) =>
      database.transaction(async (tx) => {
        if (!(await bumpTenant(tx, kid))) return null;
        const rows = await tx<SealKeyRow>('seal_keys').where({ kid }).orderBy('generation');
        const planned = plan(rows.map(rowToGeneration));
        if (!planned.ok || planned.changed.length === 0) return planned;
        await tx('seal_keys')
          .insert(planned.changed.map(generationToRow))
          .onConflict(['kid', 'generation'])
          .merge();
        const told = { published: 'key.rotated', destroyed: 'key.destroyed' } as const;
        for (const { state, generation } of planned.changed) {
          if (state === 'published' || state === 'destroyed')
            await writeAct(tx, kid, by, told[state], { key: 'seal', generation });
        }
        return planned;
      }),
  };
}
