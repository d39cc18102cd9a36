import type { StaffRole } from '../auth/console-session.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { ConcurrencyLimit } from '../http/admission.ts';
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

/** @throws {Unavailable} when too many whole trails and logs are read already */
export function readWhole<T>(reading: ConcurrencyLimit, work: () => Promise<T>): Promise<T> {
  if (reading.isFull()) throw new Unavailable('too many exports and verifications are running', 10);
  return reading.hold(work());
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
