import type { Knex } from 'knex';
import type { ApiKey } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import { readRevision } from '../db/meta-store.ts';
import { fromColumns } from '../db/sql.ts';
import type { Generation } from '../keys/generation.ts';
import type { ApiKeyRow } from './api-key-store.ts';
import type { SealKeyRow } from './seal-keys.ts';
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

/** A tenant that is stored and cannot be served. */
export interface DamagedTenant {
  readonly kid: string;
  readonly error: unknown;
}

export type SnapshotPage = Awaited<ReturnType<typeof readChanged>>;

const MAX_KIDS = 500;

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

async function readChanged(read: Knex, revision: number, since: number) {
  const columns = ['kid', 'created_at', 'settings', 'revision', 'terms_mac'];
  const tenants = await read('tenants').select(columns);
  const stale = tenants.filter((row) => row.revision > since);
  const kids = stale.map((row) => row.kid as string);
  /** The rows of a table by their tenant. */
  const of = async <Row extends { readonly kid: string }>(table: string) => {
    const byKid = new Map(kids.map((kid) => [kid, [] as Row[]]));
    const query = read(table).orderBy('kid');
    // Past the number of parameters that a statement takes, the whole table is read.
    const rows = (await (kids.length > MAX_KIDS ? query : query.whereIn('kid', kids))) as Row[];
    for (const row of rows) byKid.get(row.kid)?.push(row);
    return (kid: string): readonly Row[] => byKid.get(kid) ?? [];
  };
  const secrets = await of<{ kid: string; purpose: string; wrapped: string }>('tenant_secrets');
  const keys = await of<SealKeyRow>('seal_keys');
  const purposes = await of<PurposeRow>('purposes');
  const apiKeys = await of<ApiKeyRow>('api_keys');
  const policies = await of<PolicyRow>('tenant_policies');
  const consentPolicies = await of<ConsentPolicyRow>('consent_policies');
  const heads = await of<{ kid: string; origin: string }>('ledger_heads');
  const webhooks = await of<WebhookRow>('webhooks');
  const snapshotOf = (row: (typeof stale)[number], kid: string): TenantSnapshot => ({
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
  /** Changed too, but a row of theirs cannot be read. */
  const damaged: DamagedTenant[] = [];
  for (const row of stale) {
    try {
      changed.push(snapshotOf(row, row.kid));
    } catch (error) {
      damaged.push({ kid: row.kid as string, error });
    }
  }
  /** Every kid there is, so that a removed tenant is noticed; null when nothing changed. */
  const all = new Set(tenants.map((row) => row.kid as string)) as ReadonlySet<string> | null;
  return { revision, changed, damaged, kids: all };
}
