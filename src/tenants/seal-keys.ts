import type { Knex } from 'knex';
import { writeAct } from '../audit/store.ts';
import type { Database } from '../db/engine.ts';
import { bumpTenant, tryLockTenant } from '../db/meta-store.ts';
import { type Columns, fromColumns, toColumns } from '../db/sql.ts';
import {
  createGenerationFactory,
  type Generation,
  type KeyPlan,
  planRotate,
  type RotateOptions,
} from '../keys/generation.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { Act } from '../lib/act.ts';
import { DAY, HOUR } from '../lib/clock.ts';

/** Stores the seal keys of tenants and the counts of their use, and rotates a key. */

export type SealKeyRow = Columns<Generation>;

export function createSealKeyStore(database: Database) {
  return {
    async list(kid: string): Promise<readonly Generation[]> {
      const rows = await database.read<SealKeyRow>('seal_keys').where({ kid }).orderBy('generation');
      return rows.map((row: SealKeyRow) => fromColumns<Generation>(row));
    },
    /**
     * Reads the generations of a tenant, calls the pure plan and writes its changes
     * with their audit rows, in one transaction that excludes other writers of the
     * tenant. A refused plan writes nothing. Running servers see a change within 5 s.
     * @returns null for an unknown tenant
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
        const auditedActs = { published: 'key.rotated', destroyed: 'key.destroyed' } as const;
        for (const { state, generation } of planned.changed) {
          if (state === 'published' || state === 'destroyed')
            await writeAct(tx, kid, by, auditedActs[state], { key: 'seal', generation });
        }
        return planned;
      }),
  };
}

interface Rotation extends Pick<RotateOptions, 'graceMs' | 'force'> {
  readonly dryRun: boolean;
}

/**
 * Publishes the staged generation, or a new one, and retires
 * the previous one (contract section 5). A dry run only plans.
 * @returns null for an unknown tenant
 */
export async function rotateSealKey(
  { database, masterKey }: { readonly database: Database; readonly masterKey: MasterKey },
  kid: string,
  { graceMs, force, dryRun }: Rotation,
  by: Act,
): Promise<KeyPlan | null> {
  const make = createGenerationFactory(masterKey, kid, by.at);
  const plan = (keys: readonly Generation[]): KeyPlan =>
    planRotate(keys, make, { now: by.at, graceMs, force });
  const store = createSealKeyStore(database);
  return dryRun ? plan(await store.list(kid)) : store.change(kid, plan, by);
}

/**
 * The kinds of visits that are counted. `all` are requests for the banner, and `gpc`
 * those with Global Privacy Control: no other table knows of a visit that the signal
 * refused. `judged` are bundles, `workerless` those without a worker's answers.
 */
export type Visit = 'all' | 'gpc' | 'judged' | 'workerless';

interface Use {
  readonly kid: string;
  /** The creation time of the tenant: a later tenant with the same kid is another one. */
  readonly since: number;
  readonly count: number;
  readonly lastAt: number;
}

interface KeyUse extends Use {
  readonly of: 'key';
  /** The generation that decrypted bundles. */
  readonly generation: number;
}

interface VisitUse extends Use {
  readonly of: 'visit';
  readonly visit: Visit;
}

export type CountedUse = KeyUse | VisitUse;

/** Tells the counts of one tenant apart. */
export const nameOfUse = (use: CountedUse): string =>
  `${use.kid}|${use.of === 'visit' ? use.visit : use.generation}`;

const KEEP_DAYS = 60;

export async function addKeyTraffic(database: Database, uses: readonly CountedUse[]): Promise<void> {
  if (uses.length === 0) return;
  // All nodes write at the same minute and in the same order, so that they do not deadlock on PostgreSQL.
  const sorted = [...uses].sort((a, b) => (nameOfUse(a) < nameOfUse(b) ? -1 : 1));
  await database.transaction(async (tx) => {
    for (const use of sorted) {
      if (!(await tryLockTenant(tx, use.kid, use.since))) continue;
      await (use.of === 'visit' ? addVisits(tx, use) : addBundles(tx, use));
    }
  });
}

async function addVisits(tx: Knex.Transaction, { kid, visit, count, lastAt }: VisitUse): Promise<void> {
  await tx('tallies')
    .insert({ kid, kind: 'visit', hour: Math.floor(lastAt / HOUR) * HOUR, name: visit, n: count })
    .onConflict(['kid', 'kind', 'hour', 'name'])
    .merge({ n: tx.raw('tallies.n + ?', [count]) });
}

async function addBundles(tx: Knex.Transaction, { kid, generation, count, lastAt }: KeyUse): Promise<void> {
  await tx('key_traffic')
    .insert({ kid, generation, day: Math.floor(lastAt / DAY), bundles: count, last_at: lastAt })
    .onConflict(['kid', 'generation', 'day'])
    .merge({ bundles: tx.raw('key_traffic.bundles + ?', [count]), last_at: lastAt });
}

/** @returns the sum of each generation since that day, and the time of its last use */
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
