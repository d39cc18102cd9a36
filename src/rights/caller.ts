import { Refusal } from '../lib/errors.ts';

export type Role = 'subject' | 'reviewer' | 'dpo';

/** Who asks, as a verified token says it (contract 6.1). */
export interface Claimant {
  readonly issuer: string;
  readonly sub: string;
  readonly roles: ReadonlySet<Role>;
  /** The kid; null when the token names none. */
  readonly tenant: string | null;
  /** A visitorId that the identity provider vouches for. */
  readonly visitor: string | null;
  readonly principal: string | null;
}

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
