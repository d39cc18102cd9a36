import { type AuditAction, writeAudit } from '../audit/audit-store.ts';
import {
  CONSOLE_ABSOLUTE_MS,
  type ConsoleSession,
  hashSecret,
  isLiveSession,
  roleOf,
} from '../auth/credentials.ts';
import type { Config } from '../config.ts';
import { MINUTE } from '../lib/clock.ts';
import { actorOf, type Context, type Staff } from './context-service.ts';
import {
  deleteConsoleSession,
  findConsoleSession,
  listConsoleSessions,
  touchConsoleSession,
} from './session-store.ts';

/** Finds, lists and ends the sessions of staff. */

/** A list ends here: an older session is neither shown nor ended on the page. */
const MAX_SESSIONS = 100;
/** The time of last use is written at most once in this time, to save a write per page view. */
const TOUCH_MS = MINUTE;

type ProviderSettings = Pick<Config, 'oidc_issuer' | 'console_client_id'>;

/** @returns the hashes of issuer and client; null if staff sign in with a passkey */
export function hashProvider({ oidc_issuer: issuer, console_client_id: client }: ProviderSettings) {
  return issuer === null ? null : `${hashSecret(issuer)} ${client === null ? '' : hashSecret(client)}`;
}

/**
 * A session counts as long as the provider that vouched for it is configured. Without a client people can
 * still sign out.
 */
function isVouchedFor({ provider }: ConsoleSession, config: ProviderSettings): boolean {
  const current = hashProvider(config);
  if (current === null || config.console_client_id !== null) return provider === current;
  return provider?.startsWith(current) === true;
}

/**
 * Expired sessions are found too, because the guard keeps the text that was typed in its form: the caller
 * checks isLiveSession. A session is not found once its provider was changed, or a provider was configured
 * instead of passkeys or the other way round.
 */
export async function findSession(context: Context, token: string): Promise<ConsoleSession | null> {
  const session = await findConsoleSession(context.database, hashSecret(token));
  if (!session || !isVouchedFor(session, context.config)) return null;
  // A tenant that was removed no longer has staff.
  return context.tenantOf(session.kid) ? session : null;
}

/** Records that the session is in use. @returns the staff member of the session */
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

async function endAndAudit({ database, clock }: Context, by: Staff, hash: string, action: AuditAction) {
  const { kid } = by;
  return database.transaction(async (tx) => {
    if (!(await deleteConsoleSession(tx, kid, hash))) return false;
    await writeAudit(tx, { kid, at: clock(), actor: actorOf(by), action, object: null, detail: {} });
    return true;
  });
}

export async function endSession(context: Context, session: ConsoleSession): Promise<void> {
  await endAndAudit(context, staffOf(session), session.hash, 'staff.signed-out');
}

/** @returns live sessions: all of the tenant for a dpo, only their own for others */
async function listVisible({ database, clock }: Context, { kid, role, ref }: Staff) {
  const all = await listConsoleSessions(database, kid, clock() - CONSOLE_ABSOLUTE_MS, MAX_SESSIONS);
  return all.filter((one) => isLiveSession(one, clock()) && (role === 'dpo' || one.actor === ref));
}

/** A page gets only the beginning of the hash, and never the key by which a session is found. */
const shortId = (session: ConsoleSession): string => session.hash.slice(0, 16);

export async function listSessions(context: Context, staff: Staff, current: ConsoleSession) {
  return (await listVisible(context, staff)).map((session) => ({
    id: shortId(session),
    label: session.label,
    role: roleOf(session),
    createdAt: session.createdAt,
    seenAt: session.seenAt,
    own: session.hash === current.hash,
  }));
}

/** @returns false if this person may not see such a session, or it does not exist */
export async function revokeSession(context: Context, staff: Staff, id: string): Promise<boolean> {
  const found = (await listVisible(context, staff)).find((session) => shortId(session) === id);
  return found ? endAndAudit(context, staff, found.hash, 'staff.session-revoked') : false;
}
