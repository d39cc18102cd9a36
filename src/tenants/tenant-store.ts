import type { Knex } from 'knex';
import { writeAct } from '../audit/store.ts';
import type { Database } from '../db/engine.ts';
import { bump, bumpTenant, REMOVING } from '../db/meta-store.ts';
import { type Columns, fromColumns, isTrue, toColumns } from '../db/sql.ts';
import type { Generation } from '../keys/generation.ts';
import type { Act } from '../lib/act.ts';
import { tryOr } from '../lib/errors.ts';
import { type PolicyMode, type TenantPolicy, tenantPolicySchema } from '../schema/policy.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import type { ConsentPolicy, Purpose } from './purposes.ts';
import {
  settingForAudit,
  TENANT_SETTING_NAMES,
  type TenantSettings,
  tenantSettingsSchema,
} from './settings.ts';

/** The content of a tenant's own row. */
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

export type PurposeRow = Columns<Purpose & { readonly kid: string }>;

export function rowToTenant(row: TenantRow): StoredTenant {
  const settings = tenantSettingsSchema.parse(JSON.parse(row.settings));
  return { kid: row.kid, createdAt: row.created_at, settings };
}

export function rowToPurpose({ kid: _of, ...row }: PurposeRow): Purpose {
  return fromColumns<Purpose>(row);
}

export function purposeToRow(kid: string, purpose: Purpose): PurposeRow {
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

/** A tenant's changes to the table of rules: in force, and tried out. */
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
  /** The operator vouches for a target inside the perimeter. */
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

/** All that a tenant is made of; written whole or not at all. */
export interface NewTenant {
  readonly tenant: StoredTenant;
  readonly secrets: Readonly<Record<string, string>>;
  readonly key: Generation;
}

/** @returns false when the kid is taken */
export async function insertTenant(tx: Knex.Transaction, made: NewTenant): Promise<boolean> {
  const { kid, createdAt, settings } = made.tenant;
  const revision = await bump(tx, 'tenants');
  const row = { kid, created_at: createdAt, revision, settings: JSON.stringify(settings) };
  const inserted = await tx('tenants').insert(row).onConflict('kid').ignore().returning('kid');
  if (inserted.length === 0) return false;
  await tx('tenant_secrets').insert(
    Object.entries(made.secrets).map(([purpose, wrapped]) => ({ kid, purpose, wrapped })),
  );
  await tx('seal_keys').insert(toColumns(made.key));
  return true;
}

/**
 * Tenants and their purposes. Every change bumps the revision that running servers poll, in its own transaction.
 * An unknown kid is null or false, never an exception.
 */
export function createTenantStore(database: Database) {
  const { read } = database;
  return {
    /** The tenants whose rows can be read, in the order of their kids. */
    async list(): Promise<readonly StoredTenant[]> {
      const rows = await read<TenantRow>('tenants').select('kid', 'created_at', 'settings').orderBy('kid');
      // Nothing of a row that is damaged: it must not hide the others.
      return rows.flatMap((row) => tryOr(() => [rowToTenant(row)], []));
    },
    /** @throws where the row cannot be read */
    async get(kid: string): Promise<StoredTenant | null> {
      const row = await read<TenantRow>('tenants').where({ kid }).first();
      return row ? rowToTenant(row) : null;
    },
    /** The change is handed what is stored now, and what differs is in the audit log. @returns what is stored then */
    saveSettings: (
      kid: string,
      change: (settings: TenantSettings) => TenantSettings,
      by: Act,
    ): Promise<TenantSettings | null> =>
      database.transaction(async (tx) => {
        if (!(await bumpTenant(tx, kid))) return null;
        const row = (await tx<TenantRow>('tenants').where({ kid }).first()) as TenantRow;
        const before = rowToTenant(row).settings;
        const after = change(before);
        await tx('tenants')
          .where({ kid })
          .update({ settings: JSON.stringify(after) });
        for (const key of TENANT_SETTING_NAMES) {
          if (JSON.stringify(before[key]) === JSON.stringify(after[key])) continue;
          const [from, to] = [before[key], after[key]].map((value) => settingForAudit(key, value));
          await writeAct(tx, kid, by, 'tenant.set', { key, from: from ?? null, to: to ?? null });
        }
        return after;
      }),
    async purposes(kid: string): Promise<readonly Purpose[]> {
      const rows = await read<PurposeRow>('purposes').where({ kid }).orderBy('id');
      return rows.map(rowToPurpose);
    },
  };
}

/** Tenants whose removal has begun and has not ended. */
export async function goingTenants({ read }: Database): Promise<readonly string[]> {
  return read('tenants').where({ revision: REMOVING }).orderBy('kid').pluck('kid');
}

/** When each tenant was made, in epoch milliseconds, by kid in its order. */
export async function tenantsSince({ read }: Database): Promise<Map<string, number>> {
  const rows = await read('tenants')
    .orderBy('kid')
    .select<{ kid: string; created_at: number }[]>('kid', 'created_at');
  return new Map(rows.map(({ kid, created_at }) => [kid, Number(created_at)]));
}
