import type { Claimant } from '../auth/claims.ts';
import { Refusal } from '../lib/errors.ts';

/** Staff act within the tenant that their token names. @throws {Refusal} */
export function requireTenant(claimant: Claimant): string {
  if (claimant.tenant === null) throw new Refusal('reviewer-tenant-unbound');
  return claimant.tenant;
}

/** The staff role in which somebody acts; a dpo may do what a reviewer may. */
export function staffRole(claimant: Claimant): 'reviewer' | 'dpo' | null {
  if (claimant.roles.has('dpo')) return 'dpo';
  return claimant.roles.has('reviewer') ? 'reviewer' : null;
}
