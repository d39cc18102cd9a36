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
import { actorRef } from '../audit/audit.ts';
import { createPasskeyToken, hashSecret, LoginRefused } from '../auth/credentials.ts';
import { DAY, MINUTE } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';
import type { Context } from './context.ts';
import type { ConsoleTransaction } from './session-store.ts';
import { openSession } from './sign-in-service.ts';
import {
  findByCredential,
  findInvited,
  type Joined,
  joinStaff,
  raiseCounter,
  type StaffMember,
} from './staff-store.ts';

/** Staff without an identity provider: an invitation registers a passkey, and the passkey signs in (contract-2 section 21). */

const INVITE_MS = DAY;
/** Longer than a challenge lives. */
const USED_MS = 10 * MINUTE;
const USER_ID_BYTES = 16;

/** An invitation's secret, and what is kept of it. */
export function createInvitation(random: Random, now: number) {
  const secret = random(32).toString('base64url');
  return { secret, inviteHash: hashSecret(secret), inviteUntil: now + INVITE_MS };
}

export const staffRef = (rightsKey: Uint8Array, { id }: Pick<StaffMember, 'id'>): string =>
  actorRef(rightsKey, 'gpd staff', id);

/** The domain that passkeys are for; null at an address of digits. */
const domainOf = ({ origin }: Context): string | null => relyingPartyOf(origin(), '');

const bindingOf = (cookie: string, ceremony: Ceremony, rpId: string) =>
  ({ token: cookie, kid: '', ceremony, rpId }) as const;

/** Makes the request of the page to the browser. @param cookie of this browser: an answer from another one counts for nothing */
export function offerPasskey(context: Context, cookie: string, ceremony: Ceremony) {
  const rpId = domainOf(context);
  if (rpId === null) return null;
  const { keys, random, clock } = context;
  const challenge = createChallenge(keys.passkey, random, clock(), bindingOf(cookie, ceremony, rpId));
  const userId = random(USER_ID_BYTES).toString('base64url');
  return { ceremony, publicKey: publicKeyOf(ceremony, { rpId, challenge, userId }, 'required') };
}

/** The browser's answer to a challenge of this server, which counts once. @throws {LoginRefused} */
async function readAnswer(context: Context, cookie: string, text: string) {
  const given = readCredential(tryOr((): unknown => JSON.parse(text), null));
  const rpId = domainOf(context);
  if (!given || rpId === null) throw new LoginRefused('passkey');
  const { challenge, ceremony } = given;
  const now = context.clock();
  const binding = bindingOf(cookie, ceremony, rpId);
  if (readChallenge(context.keys.passkey, now, challenge, binding) === null)
    throw new LoginRefused('not-yours');
  if (!(await context.signInLimits.isFirstUse(challenge, now + USED_MS))) throw new LoginRefused('not-yours');
  return { given, expected: { challenge, origin: context.origin(), rpId, verifiesUser: true } };
}

async function open(
  context: Context,
  member: StaffMember,
  write: (tx: ConsoleTransaction, ref: string) => Promise<boolean>,
): Promise<string> {
  const tenant = context.tenantOf(member.kid);
  if (!tenant) throw new LoginRefused('passkey');
  const token = createPasskeyToken(context.random);
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
  const { given, expected } = await readAnswer(context, cookie, answer);
  const made = given.ceremony === 'create' ? await verifyCreated(given.credential, expected) : null;
  const credential = hashSecret(given.credential.id);
  if (!made || (await findByCredential(context.database, credential))) throw new LoginRefused('passkey');
  const joined: Joined = { credential, publicKey: made.publicKey, counter: made.counter };
  return open(context, member, (tx, ref) => joinStaff(tx, member, joined, { ref, at }));
}

/** The same refusal whatever is wrong with it. @returns the token of the new session @throws {LoginRefused} */
export async function signInByPasskey(context: Context, cookie: string, answer: string): Promise<string> {
  const { given, expected } = await readAnswer(context, cookie, answer);
  if (given.ceremony !== 'get') throw new LoginRefused('passkey');
  const member = await findByCredential(context.database, hashSecret(given.credential.id));
  if (!member?.publicKey) throw new LoginRefused('passkey');
  const counter = await verifyUsed(given.credential, member.publicKey, expected);
  if (counter === null || isCloned(member.counter, counter)) throw new LoginRefused('passkey');
  return open(context, member, (tx) => raiseCounter(tx, member, counter));
}
