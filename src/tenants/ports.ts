import type { TenantSettings } from './settings.ts';
import type { Purpose, Tenant } from './tenant.ts';

/**
 * Tenants and their purposes. Every change bumps the revision that running servers poll, in its own transaction.
 * An unknown kid is null or false, never an exception.
 */
export interface TenantStore {
  list(): Promise<readonly Tenant[]>;
  get(kid: string): Promise<Tenant | null>;
  saveSettings(kid: string, settings: TenantSettings): Promise<boolean>;
  purposes(kid: string): Promise<readonly Purpose[]>;
}
