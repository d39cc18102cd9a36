import {
  type Ceremony,
  isCloned,
  type Presentation,
  publicKeyOf,
  relyingPartyOf,
  verifyCreated,
  verifyUsed,
} from '../attest/ceremony.ts';
import { actorRef } from '../audit/audit-store.ts';
import { createConsoleToken, hashSecret, LoginRefused } from '../auth/credentials.ts';
import { DAY } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { Unavailable } from '../lib/errors.ts';
import type { Context } from './context-service.ts';
import type { ConsoleTransaction } from './session-store.ts';
import { openSession } from './sign-in-service.ts';
import {
  findByCredential,
  findInvited,
  joinStaff,
  type RegisteredPasskey,
  raiseCounter,
  type StaffMember,
} from './staff-store.ts';

/**
 * Signs staff in without an identity provider: an invitation
 * registers a passkey, which then signs in (contract-2 section 21).
 */

const INVITE_MS = DAY;
const USER_ID_BYTES = 16;

/** @returns the secret of a new invitation, and the columns that are stored */
export function createInvitation(random: Random, now: number) {
  const secret = random(32).toString('base64url');
  return { secret, inviteHash: hashSecret(secret), inviteUntil: now + INVITE_MS };
}

export const staffRef = (rightsKey: Uint8Array, { id }: Pick<StaffMember, 'id'>): string =>
  actorRef(rightsKey, 'gpd staff', id);

/**
 * @returns the domain of the passkeys; null if the origin is an IP address, for which there are no passkeys
 */
const findRpId = ({ origin }: Context): string | null => relyingPartyOf(origin(), '');

/** @returns the WebAuthn options for the page */
export function offerPasskey(context: Context, challenge: string, ceremony: Ceremony) {
  const rpId = findRpId(context);
  if (rpId === null) return null;
  const userId = context.random(USER_ID_BYTES).toString('base64url');
  return { ceremony, publicKey: publicKeyOf(ceremony, { rpId, challenge, userId }, 'required') };
}

/** @throws {LoginRefused} */
function expectedOf(context: Context, { challenge }: Presentation) {
  const rpId = findRpId(context);
  if (rpId === null) throw new LoginRefused('passkey');
  return { challenge, origin: context.origin(), rpId, verifiesUser: true };
}

async function openPasskeySession(
  context: Context,
  member: StaffMember,
  write: (tx: ConsoleTransaction, ref: string) => Promise<boolean>,
): Promise<string> {
  const tenant = context.tenantOf(member.kid);
  if (!tenant) throw new LoginRefused('passkey');
  const token = createConsoleToken(context.random);
  const actor = staffRef(tenant.rightsKey, member);
  const { kid, name: label, role } = member;
  await openSession(context, token, { kid, actor, label, roles: [role], idToken: null }, async (tx) => {
    if (!(await write(tx, actor))) throw new LoginRefused('passkey');
  });
  return token;
}

/** @returns the token of the new session @throws {LoginRefused} */
export async function joinByPasskey(
  context: Context,
  answer: Presentation,
  invitation: string,
): Promise<string> {
  const member = await findInvited(context.database, hashSecret(invitation));
  const at = context.clock();
  if (!member || at >= member.inviteUntil) throw new LoginRefused('invitation');
  const registration =
    answer.ceremony === 'create' ? await verifyCreated(answer.credential, expectedOf(context, answer)) : null;
  const credential = hashSecret(answer.credential.id);
  if (!registration || (await findByCredential(context.database, credential)))
    throw new LoginRefused('passkey');
  const joined: RegisteredPasskey = {
    credential,
    publicKey: registration.publicKey,
    counter: registration.counter,
  };
  try {
    return await openPasskeySession(context, member, (tx, ref) => joinStaff(tx, member, joined, { ref, at }));
  } catch (error) {
    // Another invitation took the same passkey meanwhile: the credential is unique. What is unavailable may
    // have joined.
    const isTaken = !(error instanceof Unavailable) && (await findByCredential(context.database, credential));
    throw isTaken ? new LoginRefused('passkey') : error;
  }
}

/** All wrong passkeys get the same refusal. @returns the token of the new session @throws {LoginRefused} */
export async function signInByPasskey(context: Context, answer: Presentation): Promise<string> {
  if (answer.ceremony !== 'get') throw new LoginRefused('passkey');
  const member = await findByCredential(context.database, hashSecret(answer.credential.id));
  if (!member?.publicKey) throw new LoginRefused('passkey');
  const counter = await verifyUsed(answer.credential, member.publicKey, expectedOf(context, answer));
  if (counter === null || isCloned(member.counter, counter)) throw new LoginRefused('passkey');
  return openPasskeySession(context, member, (tx) => raiseCounter(tx, member, counter));
}
