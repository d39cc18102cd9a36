import type { Knex } from 'knex';
import type { ApiKey } from '../auth/api-key.ts';
import { type ConsentPolicy, type ConsentPolicyRow, rowToConsentPolicy } from '../consent/terms-store.ts';
import type { Database } from '../db/db.ts';
import { readRevision } from '../db/revision.ts';
import { type PolicyRow, rowsToPolicies, type TenantPolicies } from '../ingest/policy-store.ts';
import type { Generation } from '../keys/generation.ts';
import { fromColumns } from '../lib/columns.ts';
import type { ApiKeyRow } from '../tenants/api-key-store.ts';
import type { SealKeyRow } from '../tenants/seal-key-store.ts';
import type { Purpose, Tenant } from '../tenants/tenant.ts';
import { type PurposeRow, rowToPurpose, rowToTenant } from '../tenants/tenant-store.ts';
import { rowToWebhook, type Webhook, type WebhookRow } from '../webhooks/store.ts';

/** A tenant as a server holds it in memory, secrets still wrapped. */
export interface TenantSnapshot {
  readonly tenant: Tenant;
  /** Of its last change. */
  readonly revision: number;
  readonly secrets: ReadonlyMap<string, string>;
  readonly keys: readonly Generation[];
  readonly purposes: readonly Purpose[];
  readonly apiKeys: readonly ApiKey[];
  /** The name of the tenant's log. */
  readonly logOrigin: string;
  readonly policies: TenantPolicies;
  readonly consentPolicies: readonly ConsentPolicy[];
  /** Over the purposes and policies. */
  readonly termsMac: string | null;
  readonly webhooks: readonly Webhook[];
}

/** A tenant that is stored and cannot be served. */
export interface DamagedTenant {
  readonly kid: string;
  readonly error: unknown;
}

export interface SnapshotPage {
  readonly revision: number;
  readonly changed: readonly TenantSnapshot[];
  /** Changed too, but a row of theirs cannot be read. */
  readonly damaged: readonly DamagedTenant[];
  /** Every kid there is, so that a removed tenant is noticed; null when nothing changed. */
  readonly kids: ReadonlySet<string> | null;
}

const MAX_KIDS = 500;

type Keyed = { readonly kid: string };

function groupByKid<Row extends Keyed>(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(row.kid);
    if (group) group.push(row);
    else groups.set(row.kid, [row]);
  }
  return groups;
}

/**
 * What changed after `since`. One keyed read when nothing did.
 * The revision is read first: what commits in between is read again by the next poll, never missed. The rest is of one moment, or
 * purposes would be compared with the MAC of others.
 */
export async function readSnapshot(database: Database, since: number): Promise<SnapshotPage> {
  const revision = await readRevision(database, 'tenants');
  if (revision === since) return { revision, changed: [], damaged: [], kids: null };
  return database.snapshot((read) => readChanged(read, revision, since));
}

async function readChanged(read: Knex, revision: number, since: number): Promise<SnapshotPage> {
  const columns = ['kid', 'created_at', 'settings', 'revision', 'terms_mac'];
  const tenants = await read('tenants').select(columns);
  const stale = tenants.filter((row) => row.revision > since);
  const kids = stale.map((row) => row.kid as string);
  // Past the number of parameters that a statement takes, the whole table is read.
  const of = <Row extends Keyed>(table: string): Promise<Row[]> => {
    const query = read(table).orderBy('kid');
    return (kids.length > MAX_KIDS ? query : query.whereIn('kid', kids)) as unknown as Promise<Row[]>;
  };
  const secrets = groupByKid(await of<{ kid: string; purpose: string; wrapped: string }>('tenant_secrets'));
  const keys = groupByKid(await of<SealKeyRow>('seal_keys'));
  const purposes = groupByKid(await of<PurposeRow>('purposes'));
  const apiKeys = groupByKid(await of<ApiKeyRow>('api_keys'));
  const policies = groupByKid(await of<PolicyRow>('tenant_policies'));
  const consentPolicies = groupByKid(await of<ConsentPolicyRow>('consent_policies'));
  const heads = groupByKid(await of<{ kid: string; origin: string }>('ledger_heads'));
  const webhooks = groupByKid(await of<WebhookRow>('webhooks'));
  const snapshotOf = (row: (typeof stale)[number]): TenantSnapshot => ({
    tenant: rowToTenant(row),
    revision: Number(row.revision),
    secrets: new Map((secrets.get(row.kid) ?? []).map((secret) => [secret.purpose, secret.wrapped])),
    keys: (keys.get(row.kid) ?? []).map((key) => fromColumns<Generation>(key)),
    purposes: (purposes.get(row.kid) ?? []).map(rowToPurpose),
    apiKeys: (apiKeys.get(row.kid) ?? []).map((key) => fromColumns<ApiKey>(key)),
    webhooks: (webhooks.get(row.kid) ?? []).map(rowToWebhook),
    consentPolicies: (consentPolicies.get(row.kid) ?? []).map(rowToConsentPolicy),
    termsMac: row.terms_mac as string | null,
    logOrigin: heads.get(row.kid)?.[0]?.origin ?? '',
    policies: rowsToPolicies(policies.get(row.kid) ?? []),
  });
  const changed: TenantSnapshot[] = [];
  const damaged: DamagedTenant[] = [];
  for (const row of stale) {
    try {
      changed.push(snapshotOf(row));
    } catch (error) {
      damaged.push({ kid: row.kid as string, error });
    }
  }
  return { revision, changed, damaged, kids: new Set(tenants.map((row) => row.kid as string)) };
}
