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
  saveSettings(kid: string, settings: TenantSettings): Promise<boolean>;
  purposes(kid: string): Promise<readonly Purpose[]>;
}
