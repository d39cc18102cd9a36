import {
  type Ceremony,
  createChallenge,
  isCloned,
  publicKeyOf,
  readChallenge,
  readCredential,
  relyingPartyOf,
  verifyCreated,
  verifyUsed,
} from '../attest/ceremony.ts';
import { actorRef } from '../audit/audit-store.ts';
import { createConsoleToken, hashSecret, LoginRefused } from '../auth/credentials.ts';
import { DAY } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { tryOr, Unavailable } from '../lib/errors.ts';
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

const createBinding = (cookie: string, ceremony: Ceremony, rpId: string) =>
  ({ token: cookie, kid: '', ceremony, rpId }) as const;

/**
 * @param cookie of this browser: an answer from another browser is refused
 * @returns the WebAuthn options for the page
 */
export function offerPasskey(context: Context, cookie: string, ceremony: Ceremony) {
  const rpId = findRpId(context);
  if (rpId === null) return null;
  const { keys, random, clock } = context;
  const challenge = createChallenge(keys.passkey, random, clock(), createBinding(cookie, ceremony, rpId));
  const userId = random(USER_ID_BYTES).toString('base64url');
  return { ceremony, publicKey: publicKeyOf(ceremony, { rpId, challenge, userId }, 'required') };
}

/** Each challenge can be answered once. @throws {LoginRefused} */
async function readAnswer(context: Context, cookie: string, text: string) {
  const response = readCredential(tryOr((): unknown => JSON.parse(text), null));
  const rpId = findRpId(context);
  if (!response || rpId === null) throw new LoginRefused('passkey');
  const { challenge, ceremony } = response;
  const binding = createBinding(cookie, ceremony, rpId);
  const read = readChallenge(context.keys.passkey, context.clock(), challenge, binding);
  if (read === null || !(await context.signInLimits.isFirstUse(challenge, read.expiresAt)))
    throw new LoginRefused('not-yours');
  return { response, expected: { challenge, origin: context.origin(), rpId, verifiesUser: true } };
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
  cookie: string,
  { invitation, answer }: Readonly<Record<'invitation' | 'answer', string>>,
): Promise<string> {
  const member = await findInvited(context.database, hashSecret(invitation));
  const at = context.clock();
  if (!member || at >= member.inviteUntil) throw new LoginRefused('invitation');
  const { response, expected } = await readAnswer(context, cookie, answer);
  const registration =
    response.ceremony === 'create' ? await verifyCreated(response.credential, expected) : null;
  const credential = hashSecret(response.credential.id);
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
export async function signInByPasskey(context: Context, cookie: string, answer: string): Promise<string> {
  const { response, expected } = await readAnswer(context, cookie, answer);
  if (response.ceremony !== 'get') throw new LoginRefused('passkey');
  const member = await findByCredential(context.database, hashSecret(response.credential.id));
  if (!member?.publicKey) throw new LoginRefused('passkey');
  const counter = await verifyUsed(response.credential, member.publicKey, expected);
  if (counter === null || isCloned(member.counter, counter)) throw new LoginRefused('passkey');
  return openPasskeySession(context, member, (tx) => raiseCounter(tx, member, counter));
}
