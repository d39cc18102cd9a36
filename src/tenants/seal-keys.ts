import { writeAct } from '../audit/store.ts';
import type { Database } from '../db/engine.ts';
import { bumpTenant, tryLockTenant } from '../db/meta-store.ts';
import { type Columns, fromColumns, toColumns } from '../db/sql.ts';
import {
  type Generation,
  generationMaker,
  type KeyPlan,
  planRotate,
  type RotateOptions,
} from '../keys/generation.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { Act } from '../lib/act.ts';
import { DAY, HOUR } from '../lib/clock.ts';

export type SealKeyRow = Columns<Generation>;

export function createSealKeyStore(database: Database) {
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

interface Rotation extends Pick<RotateOptions, 'graceMs' | 'force'> {
  readonly dryRun: boolean;
}

/**
 * Publishes the staged generation, or a new one, and retires the old (contract section 5): a pure plan over the tenant's
 * keys, then the keys and their audit rows in one transaction. Unknown tenant: null.
 */
export async function rotateSealKey(
  { database, masterKey }: { readonly database: Database; readonly masterKey: MasterKey },
  kid: string,
  { graceMs, force, dryRun }: Rotation,
  by: Act,
): Promise<KeyPlan | null> {
  const make = generationMaker(masterKey, kid, by.at);
  const plan = (keys: readonly Generation[]): KeyPlan =>
    planRotate(keys, make, { now: by.at, graceMs, force });
  const store = createSealKeyStore(database);
  return dryRun ? plan(await store.list(kid)) : store.change(kid, plan, by);
}

/**
 * How many bundles each generation of a seal key opened, by day: what says when destroying one is safe. And how often the
 * banner was asked for, by hour, with and without Global Privacy Control: nobody else sees a visit that the signal refuses.
 * And how many bundles were judged without a worker's answers.
 */

export type Visit = 'all' | 'gpc' | 'judged' | 'workerless';

export interface KeyUse {
  readonly kid: string;
  /** When the tenant was made. */
  readonly since: number;
  readonly generation: number;
  readonly bundles: number;
  readonly lastAt: number;
  /** Of no key, and of generation 0: `gpc` is a part of `all`, `workerless` of `judged`. */
  readonly visit?: Visit;
}

const KEEP_DAYS = 60;

export async function addKeyTraffic(database: Database, uses: readonly KeyUse[]): Promise<void> {
  if (uses.length === 0) return;
  // One order for all nodes, which write on the minute: they must not deadlock on PostgreSQL.
  const keyOf = ({ kid, generation, visit }: KeyUse): string => `${kid}|${visit ?? generation}`;
  const sorted = [...uses].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  await database.transaction(async (tx) => {
    for (const { kid, since, generation, bundles, lastAt, visit } of sorted) {
      if (!(await tryLockTenant(tx, kid, since))) continue;
      if (visit) {
        await tx('tallies')
          .insert({ kid, kind: 'visit', hour: Math.floor(lastAt / HOUR) * HOUR, name: visit, n: bundles })
          .onConflict(['kid', 'kind', 'hour', 'name'])
          .merge({ n: tx.raw('tallies.n + ?', [bundles]) });
        continue;
      }
      const row = { kid, generation, day: Math.floor(lastAt / DAY), bundles, last_at: lastAt };
      await tx('key_traffic')
        .insert(row)
        .onConflict(['kid', 'generation', 'day'])
        .merge({ bundles: tx.raw('key_traffic.bundles + ?', [bundles]), last_at: lastAt });
    }
  });
}

/** Since that day, by generation. */
export async function readKeyTraffic(database: Database, kid: string, since: number) {
  const rows = (await database
    .read('key_traffic')
    .where({ kid })
    .where('day', '>=', Math.floor(since / DAY))
    .groupBy('generation')
    .select('generation')
    .sum({ bundles: 'bundles' })
    .max({ last_at: 'last_at' })) as { generation: number; bundles: number; last_at: number }[];
  return rows.map(({ generation, bundles, last_at: lastAt }) => {
    return { generation, bundles: Number(bundles), lastAt: Number(lastAt) };
  });
}

export async function purgeKeyTraffic(database: Database, now: number): Promise<void> {
  const oldest = Math.floor(now / DAY) - KEEP_DAYS;
  await database.transaction((tx) => tx('key_traffic').where('day', '<', oldest).delete());
}
