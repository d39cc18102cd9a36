import { writeAct } from '../audit/store.ts';
import type { Database } from '../db/db.ts';
import { bumpTenant } from '../db/revision.ts';
import type { Generation } from '../keys/generation.ts';
import type { KeyPlan } from '../keys/rotate.ts';
import type { Act } from '../lib/act.ts';
import { type Columns, fromColumns, toColumns } from '../lib/columns.ts';

export type SealKeyRow = Columns<Generation>;

export function makeSealKeyStore(database: Database) {
  return {
    async list(kid: string): Promise<readonly Generation[]> {
      const rows = await database.read<SealKeyRow>('seal_keys').where({ kid }).orderBy('generation');
      return rows.map((row: SealKeyRow) => fromColumns<Generation>(row));
    },
    /**
     * Reads a tenant's generations, hands them to the pure plan and writes what it says, all in one transaction that
     * excludes other writers of the same tenant; running servers see it within 5 s. A refused plan writes nothing. What
     * was published or destroyed is in the audit log. Unknown tenant: null.
     */
    change: (kid: string, plan: (keys: readonly Generation[]) => KeyPlan, by: Act): Promise<KeyPlan | null> =>
      database.transaction(async (tx) => {
        if (!(await bumpTenant(tx, kid))) return null;
        const rows = await tx<SealKeyRow>('seal_keys').where({ kid }).orderBy('generation');
        const planned = plan(rows.map((row: SealKeyRow) => fromColumns<Generation>(row)));
        if (!planned.ok || planned.changed.length === 0) return planned;
        await tx('seal_keys')
          .insert(planned.changed.map(toColumns))
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
