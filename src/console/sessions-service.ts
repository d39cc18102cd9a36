import type { AuditAction } from '../audit/audit.ts';
import { writeAudit } from '../audit/store.ts';
import {
  CONSOLE_ABSOLUTE_MS,
  type ConsoleSession,
  hashSecret,
  isLiveSession,
  isPasskeyToken,
  roleOf,
} from '../auth/credentials.ts';
import { MINUTE } from '../lib/clock.ts';
import { actorOf, type Context, type Staff } from './context.ts';
import {
  deleteConsoleSession,
  findConsoleSession,
  listConsoleSessions,
  touchConsoleSession,
} from './session-store.ts';

/** Sessions of staff: found by their cookie, listed, ended. */

const MAX_SESSIONS = 100;
/** A write for every page view would be too many. */
const TOUCH_MS = MINUTE;

/** Whatever its age. */
export async function findSession(context: Context, token: string): Promise<ConsoleSession | null> {
  if (isPasskeyToken(token) && context.config.oidc_issuer !== null) return null;
  const session = await findConsoleSession(context.database, hashSecret(token));
  // A tenant that was removed has no staff any more.
  return session && context.tenantOf(session.kid) ? session : null;
}

/** Whose session it is, which is seen now. */
export async function enterSession({ database }: Context, session: ConsoleSession, now: number) {
  if (now - session.seenAt > TOUCH_MS) await touchConsoleSession(database, session.hash, now);
  return staffOf(session);
}

const staffOf = (session: ConsoleSession): Staff => ({
  kid: session.kid,
  role: roleOf(session),
  ref: session.actor,
  label: session.label,
});

async function end({ database, clock }: Context, by: Staff, hash: string, action: AuditAction) {
  const { kid } = by;
  return database.transaction(async (tx) => {
    if (!(await deleteConsoleSession(tx, kid, hash))) return false;
    await writeAudit(tx, { kid, at: clock(), actor: actorOf(by), action, object: null, detail: {} });
    return true;
  });
}

export async function endSession(context: Context, session: ConsoleSession): Promise<void> {
  await end(context, staffOf(session), session.hash, 'staff.signed-out');
}

/** Live ones that a person may see: a dpo the tenant's, a reviewer their own. */
async function within({ database, clock }: Context, { kid, role, ref }: Staff) {
  const all = await listConsoleSessions(database, kid, clock() - CONSOLE_ABSOLUTE_MS, MAX_SESSIONS);
  return all.filter((one) => isLiveSession(one, clock()) && (role === 'dpo' || one.actor === ref));
}

/** The hash is the key of the table: a page shows the beginning of it. */
const idOf = (session: ConsoleSession): string => session.hash.slice(0, 16);

export async function listSessions(context: Context, staff: Staff, current: ConsoleSession) {
  return (await within(context, staff)).map((session) => ({
    id: idOf(session),
    label: session.label,
    role: roleOf(session),
    createdAt: session.createdAt,
    seenAt: session.seenAt,
    own: session.hash === current.hash,
  }));
}

/** @returns false when there is no such session within reach */
export async function revokeSession(context: Context, staff: Staff, id: string): Promise<boolean> {
  const found = (await within(context, staff)).find((session) => idOf(session) === id);
  return found ? end(context, staff, found.hash, 'staff.session-revoked') : false;
}
