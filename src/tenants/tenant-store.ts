import type { Knex } from 'knex';
import { writeAct } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { bump, bumpTenant, REMOVING } from '../db/meta-store.ts';
import { type Columns, fromColumns, isTrue, toColumns } from '../db/sql.ts';
import type { Generation } from '../keys/generation.ts';
import type { Act } from '../lib/act.ts';
import { tryOr } from '../lib/errors.ts';
import { type PolicyMode, type TenantPolicy, tenantPolicySchema } from '../schema/policy.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import type { ConsentPolicy, DefinedPurpose, Purpose } from './purposes.ts';
import {
  redactForAudit,
  TENANT_SETTING_NAMES,
  type TenantSettings,
  tenantSettingsSchema,
} from './settings.ts';

/** Stores tenants with their settings, purposes, policies and webhooks, and maps these rows to values. */

/** The content of the row in `tenants`. */
export interface StoredTenant {
  readonly kid: string;
  readonly createdAt: number;
  readonly settings: TenantSettings;
}

interface TenantRow {
  readonly kid: string;
  readonly created_at: number;
  readonly settings: string;
}

export type PurposeRow = Columns<Omit<DefinedPurpose, 'banner'> & { readonly kid: string }> & {
  readonly banner: unknown;
};

export function rowToTenant(row: TenantRow): StoredTenant {
  const settings = tenantSettingsSchema.parse(JSON.parse(row.settings));
  return { kid: row.kid, createdAt: row.created_at, settings };
}

/** PostgreSQL answers places in the log as it answers all large numbers, as text. */
const placeOf = (cell: unknown): number | null => (cell == null ? null : Number(cell));

export function rowToPurpose({ kid: _kid, ...row }: PurposeRow): DefinedPurpose {
  return {
    ...fromColumns<DefinedPurpose>({ ...row, banner: isTrue(row.banner) }),
    definition: placeOf(row.definition),
    materialSince: placeOf(row.material_since),
    optOutUntil: placeOf(row.opt_out_until),
    askUntil: placeOf(row.ask_until),
  };
}

/** The purpose as people and API clients read it, without its places in the log. */
export function toPurpose({ id, title, description, lawfulBasis, gpc, ttlDays, banner }: Purpose): Purpose {
  return { id, title, description, lawfulBasis, gpc, ttlDays, banner };
}

export function purposeToRow(kid: string, purpose: DefinedPurpose): PurposeRow {
  return toColumns({ kid, ...purpose });
}

export type ConsentPolicyRow = Columns<Omit<ConsentPolicy, 'material'>> & {
  readonly kid: string;
  readonly material: unknown;
};

export function rowToConsentPolicy(row: ConsentPolicyRow): ConsentPolicy {
  const { version, sha256: digest } = row;
  return { version, sha256: digest, material: isTrue(row.material), publishedAt: Number(row.published_at) };
}

/** A tenant's changes to the table of rules: one that is in effect, and one that is only tried out. */
export type TenantPolicies = Readonly<Partial<Record<PolicyMode, TenantPolicy>>>;

export interface PolicyRow {
  readonly kid: string;
  readonly mode: PolicyMode;
  readonly policy: string;
}

export function rowsToPolicies(rows: readonly PolicyRow[]): TenantPolicies {
  return Object.fromEntries(rows.map((row) => [row.mode, tenantPolicySchema.parse(JSON.parse(row.policy))]));
}

export interface Webhook {
  readonly kid: string;
  readonly id: string;
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  /** The operator has allowed a target on a private network. */
  readonly allowPrivate: boolean;
  readonly wrappedSecret: string;
  readonly createdAt: number;
}

export type WebhookRow = Columns<Omit<Webhook, 'events' | 'allowPrivate'>> & {
  readonly events: string;
  readonly allow_private: unknown;
};

export const rowToWebhook = (row: WebhookRow): Webhook =>
  fromColumns<Webhook>({
    ...row,
    events: JSON.parse(row.events) as WebhookEvent[],
    allow_private: isTrue(row.allow_private),
  });

/** The rows of a new tenant, which are written together. */
export interface NewTenant {
  readonly tenant: StoredTenant;
  readonly secrets: Readonly<Record<string, string>>;
  readonly key: Generation;
}

/** @returns false if the kid already exists */
export async function insertTenant(tx: Knex.Transaction, newTenant: NewTenant): Promise<boolean> {
  const { kid, createdAt, settings } = newTenant.tenant;
  const revision = await bump(tx, 'tenants');
  const row = { kid, created_at: createdAt, revision, settings: JSON.stringify(settings) };
  const inserted = await tx('tenants').insert(row).onConflict('kid').ignore().returning('kid');
  if (inserted.length === 0) return false;
  await tx('tenant_secrets').insert(
    Object.entries(newTenant.secrets).map(([purpose, wrapped]) => ({ kid, purpose, wrapped })),
  );
  await tx('seal_keys').insert(toColumns(newTenant.key));
  return true;
}

/** The stored settings: those of a process are up to a few seconds older. The tenant exists. */
export async function readSettings(tx: Knex.Transaction, kid: string): Promise<TenantSettings> {
  return rowToTenant((await tx<TenantRow>('tenants').where({ kid }).first()) as TenantRow).settings;
}

type SettingsChange = (settings: TenantSettings) => TenantSettings;

/**
 * Applies `change` to the stored settings, and audits each that differs.
 * @returns the new settings; null for an unknown kid
 */
export async function changeSettings(tx: Knex.Transaction, kid: string, change: SettingsChange, by: Act) {
  if (!(await bumpTenant(tx, kid))) return null;
  const before = await readSettings(tx, kid);
  const after = change(before);
  await tx('tenants')
    .where({ kid })
    .update({ settings: JSON.stringify(after) });
  for (const key of TENANT_SETTING_NAMES) {
    if (JSON.stringify(before[key]) === JSON.stringify(after[key])) continue;
    const [from, to] = [before[key], after[key]].map((value) => redactForAudit(key, value));
    await writeAct(tx, kid, by, 'tenant.set', { key, from: from ?? null, to: to ?? null });
  }
  return after;
}

/**
 * Every change raises the revision that running servers poll, in the same
 * transaction. For an unknown kid these return null or false; they do not throw.
 */
export function createTenantStore(database: Database) {
  const { read } = database;
  return {
    /** @returns the tenants whose rows can be read, in the order of their kids */
    async list(): Promise<readonly StoredTenant[]> {
      const rows = await read<TenantRow>('tenants').select('kid', 'created_at', 'settings').orderBy('kid');
      // A damaged row is skipped, so that it does not hide the others.
      return rows.flatMap((row) => tryOr(() => [rowToTenant(row)], []));
    },
    /** @throws {Error} if the row is damaged */
    async get(kid: string): Promise<StoredTenant | null> {
      const row = await read<TenantRow>('tenants').where({ kid }).first();
      return row ? rowToTenant(row) : null;
    },
    /** {@link changeSettings} in one transaction. */
    saveSettings: (kid: string, change: SettingsChange, by: Act): Promise<TenantSettings | null> =>
      database.transaction((tx) => changeSettings(tx, kid, change, by)),
    async purposes(kid: string): Promise<readonly Purpose[]> {
      const rows = await read<PurposeRow>('purposes').where({ kid }).orderBy('id');
      return rows.map((row) => toPurpose(rowToPurpose(row)));
    },
  };
}

/** @returns the kids of tenants whose removal has begun and has not finished */
export async function listTenantsInRemoval({ read }: Database): Promise<readonly string[]> {
  return read('tenants').where({ revision: REMOVING }).orderBy('kid').pluck('kid');
}

/** @returns the creation time of each tenant in epoch milliseconds, in the order of the kids */
export async function readCreationTimes({ read }: Database): Promise<Map<string, number>> {
  const rows = await read('tenants')
    .orderBy('kid')
    .select<{ kid: string; created_at: number }[]>('kid', 'created_at');
  return new Map(rows.map(({ kid, created_at }) => [kid, Number(created_at)]));
}
