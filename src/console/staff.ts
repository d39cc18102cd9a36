import type { StaffRole } from '../auth/console-session.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import { type ConcurrencyLimit, makeConcurrencyLimit } from '../http/admission.ts';
import type { Actor } from '../lib/act.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';

/** Staff at work, within the one tenant of their token. */
export interface Staff {
  readonly kid: string;
  readonly role: StaffRole;
  /** Keyed reference. */
  readonly ref: string;
  readonly label: string;
}

/** As the audit log knows them. */
export const actorOf = ({ role, ref }: Staff): Actor => ({ role, ref });

/** Bounds the exports and verifications of one tenant, each of which reads a whole trail or a whole log. */
export function makeReadWhole(places: number) {
  const limits = new Map<string, ConcurrencyLimit>();
  /** @throws {Unavailable} when the tenant's places are taken; another tenant's do not count */
  return <T>({ kid }: Pick<Staff, 'kid'>, work: () => Promise<T>): Promise<T> => {
    const limit = limits.get(kid) ?? makeConcurrencyLimit(places);
    limits.set(kid, limit);
    if (limit.isFull()) throw new Unavailable('too many exports and verifications are running', 10);
    return limit.hold(work());
  };
}

/** Theirs. @throws {Refusal} `not-found` when it was removed meanwhile */
export function requireTenant(
  tenantOf: (kid: string) => ConsentTenant | undefined,
  kid: string,
): ConsentTenant {
  const tenant = tenantOf(kid);
  if (!tenant) throw new Refusal('not-found');
  return tenant;
}
