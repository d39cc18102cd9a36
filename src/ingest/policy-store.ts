import { writeAct } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { bumpTenant } from '../db/meta-store.ts';
import { requireNone } from '../db/sql.ts';
import type { Act } from '../lib/act.ts';
import type { PolicyMode, TenantPolicy } from '../schema/policy.ts';
import { type PolicyRow, rowsToPolicies, type TenantPolicies } from '../tenants/tenant-store.ts';
import { applyPolicy } from './verdict/classify.ts';

/** Stores a tenant's weights of rules, live and in shadow, and counts how often both agree. */

export async function readPolicies(database: Database, kid: string): Promise<TenantPolicies> {
  return rowsToPolicies(await database.read<PolicyRow>('tenant_policies').where({ kid }));
}

const versionOf = (policy: TenantPolicy | null): string | null => policy && applyPolicy(policy).version;

/** Null takes the policy of that mode away. @returns whether there is such a tenant */
export function savePolicy(
  database: Database,
  kid: string,
  mode: PolicyMode,
  policy: TenantPolicy | null,
  by: Act,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return false;
    const previousPolicy =
      rowsToPolicies(await tx<PolicyRow>('tenant_policies').where({ kid, mode }))[mode] ?? null;
    const stored = tx('tenant_policies').where({ kid, mode });
    await stored.clone().delete();
    await requireNone(tx, stored, `the ${mode} policy of ${kid} is not replaced`);
    if (policy) await tx('tenant_policies').insert({ kid, mode, policy: JSON.stringify(policy) });
    const [from, to] = [previousPolicy, policy].map(versionOf);
    await writeAct(tx, kid, by, 'tenant.set', { key: `policy.${mode}`, from: from ?? null, to: to ?? null });
    return true;
  });
}

type ShadowCount = Readonly<Record<'policyVersion' | 'live' | 'shadow', string>> & {
  readonly verdicts: number;
};

export async function readShadowCounts(database: Database, kid: string) {
  const rows = await database
    .read('shadow_counts')
    .where({ kid })
    .groupBy('policy_version', 'live_class', 'shadow_class')
    .select({ policyVersion: 'policy_version', live: 'live_class', shadow: 'shadow_class' })
    .sum<ShadowCount[]>({ verdicts: 'verdicts' });
  return rows.map((row) => ({ ...row, verdicts: Number(row.verdicts) }));
}
