import type { Act } from '../lib/act.ts';
import type { TenantSettings } from './settings.ts';
import type { Purpose, Tenant } from './tenant.ts';

/**
 * Tenants and their purposes. Every change bumps the revision that running servers poll, in its own transaction.
 * An unknown kid is null or false, never an exception.
 */
export interface TenantStore {
  /** Of every tenant, in order, also where the rest of its row cannot be read. */
  kids(): Promise<readonly string[]>;
  /** The tenants whose rows can be read, in the order of their kids. */
  list(): Promise<readonly Tenant[]>;
  /** @throws where the row cannot be read */
  get(kid: string): Promise<Tenant | null>;
  /** The change is handed what is stored now, and what differs is in the audit log. @returns what is stored then */
  saveSettings(
    kid: string,
    change: (settings: TenantSettings) => TenantSettings,
    by: Act,
  ): Promise<TenantSettings | null>;
  purposes(kid: string): Promise<readonly Purpose[]>;
}
