import { relyingPartyOf } from '../attest/ceremony.ts';
import type { StaffRole } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import type { Act } from '../lib/act.ts';
import { createUlid, type Random } from '../lib/crypto.ts';
import { createInvitation } from './passkey-service.ts';
import { inviteStaff, type StaffMember } from './staff-store.ts';

/** Invites staff to the console: for `gpd staff invite`, and for the page of `gpd serve --setup`. */

/** No @: colleagues see the name, and it must not be an e-mail address. */
const NAME = /^[\p{L}\p{N}](?:[\p{L}\p{N} '._-]{0,58}[\p{L}\p{N}.])?$/u;

export const NAME_RULE = "1 to 60 letters, digits, blanks and . _ - '";
export const isStaffName = (name: string): boolean => NAME.test(name);

/** False where the page of a link could make no passkey. */
export const canJoinAt = (origin: string): boolean => relyingPartyOf(origin, '') !== null;

/**
 * @param origin of the console
 * @returns the link, which works once; null if another person has the name
 */
export async function invite(
  database: Database,
  { kid, name, role }: { readonly kid: string; readonly name: string; readonly role: StaffRole },
  { origin, act, random }: { readonly origin: string; readonly act: Act; readonly random: Random },
) {
  const { secret, ...invitation } = createInvitation(random, act.at);
  const member: StaffMember = {
    kid,
    id: `stf_${createUlid(() => act.at, random)}`,
    name,
    role,
    ...invitation,
    credential: null,
    publicKey: null,
    counter: 0,
    createdAt: act.at,
    joinedAt: null,
    removedAt: null,
  };
  if (!(await inviteStaff(database, member, act))) return null;
  return { link: `${origin}/console/join#${encodeURIComponent(name)}.${secret}`, until: member.inviteUntil };
}
