import type { Knex } from 'knex';
import type { ApiKey } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import { readRevision } from '../db/meta-store.ts';
import { fromColumns } from '../db/sql.ts';
import type { Generation } from '../keys/generation.ts';
import type { ApiKeyRow } from './api-key-store.ts';
import type { SealKeyRow } from './secrets-store.ts';
import type { TenantSnapshot } from './tenant.ts';
import {
  type ConsentPolicyRow,
  type PolicyRow,
  type PurposeRow,
  rowsToPolicies,
  rowToConsentPolicy,
  rowToPurpose,
  rowToTenant,
  rowToWebhook,
  type WebhookRow,
} from './tenant-store.ts';

/** Reads all tenants, or those that changed, for the directory in memory. Servers poll it once a second. */

/** A tenant with a row that cannot be read or unwrapped; it is not served. */
export interface DamagedTenant {
  readonly kid: string;
  readonly error: unknown;
}

export type SnapshotPage = Awaited<ReturnType<typeof readChanged>>;

const MAX_KIDS = 500;

/**
 * Reads the tenants that changed after the revision `since`; this is one keyed read if none did.
 * The revision is read first, so that a change committed meanwhile is read again by the next poll
 * and never missed. The rest is one snapshot, because the MAC of the terms must match the purposes.
 */
export async function readSnapshot(database: Database, since: number): Promise<SnapshotPage> {
  const revision = await readRevision(database, 'tenants');
  if (revision === since) return { revision, changed: [], damaged: [], kids: null };
  return database.snapshot((read) => readChanged(read, revision, since));
}

async function readChanged(read: Knex, revision: number, since: number) {
  const columns = ['kid', 'created_at', 'settings', 'revision', 'terms_mac'];
  const tenants = await read('tenants').select(columns);
  const changedRows = tenants.filter((row) => row.revision > since);
  const kids = changedRows.map((row) => row.kid as string);
  const readByKid = async <Row extends { readonly kid: string }>(table: string) => {
    const byKid = new Map(kids.map((kid) => [kid, [] as Row[]]));
    const query = read(table).orderBy('kid');
    // A statement takes a limited number of parameters: for more kids the whole table is read.
    const rows = (await (kids.length > MAX_KIDS ? query : query.whereIn('kid', kids))) as Row[];
    for (const row of rows) byKid.get(row.kid)?.push(row);
    return (kid: string): readonly Row[] => byKid.get(kid) ?? [];
  };
  const secrets = await readByKid<{ kid: string; purpose: string; wrapped: string }>('tenant_secrets');
  const keys = await readByKid<SealKeyRow>('seal_keys');
  const purposes = await readByKid<PurposeRow>('purposes');
  const apiKeys = await readByKid<ApiKeyRow>('api_keys');
  const policies = await readByKid<PolicyRow>('tenant_policies');
  const consentPolicies = await readByKid<ConsentPolicyRow>('consent_policies');
  const heads = await readByKid<{ kid: string; origin: string }>('ledger_heads');
  const webhooks = await readByKid<WebhookRow>('webhooks');
  const snapshotOf = (row: (typeof changedRows)[number], kid: string): TenantSnapshot => ({
    ...rowToTenant(row),
    revision: Number(row.revision),
    secrets: new Map(secrets(kid).map(({ purpose, wrapped }) => [purpose, wrapped])),
    keys: keys(kid).map((key) => fromColumns<Generation>(key)),
    purposes: purposes(kid).map(rowToPurpose),
    apiKeys: apiKeys(kid).map((key) => fromColumns<ApiKey>(key)),
    webhooks: webhooks(kid).map(rowToWebhook),
    consentPolicies: consentPolicies(kid).map(rowToConsentPolicy),
    termsMac: row.terms_mac as string | null,
    logOrigin: heads(kid)[0]?.origin ?? '',
    policies: rowsToPolicies(policies(kid)),
  });
  const changed: TenantSnapshot[] = [];
  const damaged: DamagedTenant[] = [];
  for (const row of changedRows) {
    try {
      changed.push(snapshotOf(row, row.kid));
    } catch (error) {
      damaged.push({ kid: row.kid as string, error });
    }
  }
  /**
   * All kids, so that the directory notices removed tenants; readSnapshot returns null if nothing changed.
   */
  const allKids = new Set(tenants.map((row) => row.kid as string)) as ReadonlySet<string> | null;
  return { revision, changed, damaged, kids: allKids };
}
