import type { Knex } from 'knex';
import { operatorActor, writeAct } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { bumpTenant } from '../db/meta-store.ts';
import { type Columns, cellOf, fromColumns, requireNone, toColumns } from '../db/sql.ts';
import {
  createGenerationFactory,
  type Generation,
  type KeyPlan,
  planRotate,
  planSweep,
  type RotateOptions,
} from '../keys/generation.ts';
import { deriveTenantKeys, type MasterKey, ROOT_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import type { Act, InstallationAct } from '../lib/act.ts';
import { MINUTE } from '../lib/clock.ts';
import type { Job } from '../lib/jobs.ts';
import { type KeyUseCounter, purgeKeyTraffic } from './key-use-store.ts';

/**
 * Stores the wrapped secrets and the seal keys of tenants, and rotates a seal key. The operator's reference
 * in audit rows is computed here because it needs such a secret.
 */

/** Replaces the wrapped secret of this purpose. @returns false for an unknown tenant */
export function saveTenantSecret(database: Database, kid: string, purpose: string, wrapped: string, by: Act) {
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return false;
    await writeAct(tx, kid, by, 'key.rotated', { key: purpose });
    await tx('tenant_secrets').insert({ kid, purpose, wrapped }).onConflict(['kid', 'purpose']).merge();
    return true;
  });
}

/** @returns the wrapped secrets of one purpose, by kid */
export async function readTenantSecrets(database: Database, purpose: string) {
  const secrets = database.read('tenant_secrets').where({ purpose });
  const rows = await secrets.select<{ kid: string; wrapped: string }[]>('kid', 'wrapped');
  return new Map(rows.map(({ kid, wrapped }) => [kid, wrapped]));
}

export async function readTenantSecret(database: Database, kid: string, purpose: string) {
  return (await cellOf<string>(database.read('tenant_secrets').where({ kid, purpose }), 'wrapped')) ?? null;
}

/**
 * @returns a function that gives the reference by which a
 *   tenant's audit rows name the person at the command line
 */
export async function createOperatorLookup(
  { database, masterKey }: { readonly database: Database; readonly masterKey: MasterKey },
  account: string,
): Promise<InstallationAct['actorOf']> {
  const roots = await readTenantSecrets(database, ROOT_SECRET);
  return (kid) => {
    const wrapped = roots.get(kid);
    if (wrapped === undefined) return undefined;
    try {
      const secret = masterKey.unwrap(wrapped, tenantSecretContext(kid, ROOT_SECRET));
      return operatorActor(deriveTenantKeys(secret).rights, 'gpd cli', account);
    } catch {
      // A damaged tenant must not stop a backup; its audit row records an unknown operator.
      return { role: 'operator', ref: 'unknown' };
    }
  };
}

export type SealKeyRow = Columns<Generation>;

/** @returns the generations of a tenant, oldest first */
export async function listSealKeys(db: Knex, kid: string): Promise<readonly Generation[]> {
  const rows = await db<SealKeyRow>('seal_keys').where({ kid }).orderBy('generation');
  return rows.map((row: SealKeyRow) => fromColumns<Generation>(row));
}

/**
 * Reads the generations back: a destroyed key that stays decrypts what nobody may decrypt any more.
 * @throws {WriteUndone}
 */
async function requireStates(
  tx: Knex.Transaction,
  kid: string,
  changed: readonly Generation[],
): Promise<void> {
  for (const { generation, state, wrappedPrivate } of changed) {
    const otherRows = tx('seal_keys')
      .where({ kid, generation })
      .where((row) => {
        void row.whereNot({ state });
        if (wrappedPrivate === null) void row.orWhereNotNull('wrapped_private');
      });
    await requireNone(tx, otherRows, `generation ${generation} of ${kid} is not ${state}`);
  }
}

/**
 * Calls the pure plan with the generations of a tenant and writes its changes with
 * their audit rows, in one transaction that excludes other writers of the tenant.
 * A refused plan writes nothing. Running servers see a change within 5 s.
 * @returns null for an unknown tenant
 */
export function changeSealKeys(
  database: Database,
  kid: string,
  plan: (keys: readonly Generation[]) => KeyPlan,
  by: Act,
): Promise<KeyPlan | null> {
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return null;
    const planned = plan(await listSealKeys(tx, kid));
    if (!planned.ok || planned.changed.length === 0) return planned;
    await tx('seal_keys').insert(planned.changed.map(toColumns)).onConflict(['kid', 'generation']).merge();
    await requireStates(tx, kid, planned.changed);
    const auditedActs = { published: 'key.rotated', destroyed: 'key.destroyed' } as const;
    for (const { state, generation } of planned.changed) {
      if (state === 'published' || state === 'destroyed')
        await writeAct(tx, kid, by, auditedActs[state], { key: 'seal', generation });
    }
    return planned;
  });
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
  return dryRun ? plan(await listSealKeys(database.read, kid)) : changeSealKeys(database, kid, plan, by);
}

/** Overwrites the private keys of generations whose grace period has ended. */
async function destroyRetired(database: Database, kid: string, now: number): Promise<void> {
  if (planSweep(await listSealKeys(database.read, kid), now).length === 0) return;
  const plan = (keys: readonly Generation[]): KeyPlan => {
    const changed = planSweep(keys, now);
    const [result] = changed;
    return result ? { ok: true, changed, result } : { ok: false, reason: 'no-such-generation' };
  };
  await changeSealKeys(database, kid, plan, { role: 'system', ref: 'grace-over', at: now });
}

export const tenantJobs = ({
  database,
  keyUse,
}: {
  readonly database: Database;
  readonly keyUse: KeyUseCounter;
}): readonly Job[] => [
  { name: 'purge-key-traffic', every: MINUTE, run: ({ until }) => purgeKeyTraffic(database, until) },
  { name: 'destroy-keys', every: MINUTE, each: (kid, { until }) => destroyRetired(database, kid, until) },
  { name: 'flush-key-use', every: MINUTE, run: keyUse.flush },
];
