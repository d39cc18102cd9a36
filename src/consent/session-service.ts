import { hashSecret } from '../auth/api-key.ts';
import { makeSessionToken, type PrincipalSession, SESSION_TTL_MS } from '../auth/session.ts';
import type { Database } from '../db/db.ts';
import { sessionContext } from '../keys/contexts.ts';
import { type Clock, isoTime } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';
import { findSession, insertSession } from './session-store.ts';
import type { ConsentTenant } from './tenant.ts';

/** Sessions of principals: a person, verified by the tenant's backend (contract section 7). */

export interface SessionDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly random: Random;
}

/** @param keyId the API key that opens it, and ends it */
export async function openSession(
  { database, clock, random }: SessionDeps,
  tenant: ConsentTenant,
  principalId: string,
  keyId: string,
) {
  const token = makeSessionToken(random);
  const hash = hashSecret(token);
  const expiresAt = clock() + SESSION_TTL_MS;
  const wrappedPrincipalId = tenant.wrapper.wrap(Buffer.from(principalId), sessionContext(tenant.kid, hash));
  const { kid, since } = tenant;
  const principal = tenant.refOf(principalId);
  await insertSession(database, { hash, kid, principal, wrappedPrincipalId, expiresAt, keyId }, since);
  return { token, principalId, expiresAt: isoTime(expiresAt) };
}

export async function readSession(
  { database, clock }: Omit<SessionDeps, 'random'>,
  tenantOf: (kid: string) => ConsentTenant | undefined,
  token: string,
): Promise<PrincipalSession | null> {
  const hash = hashSecret(token);
  const stored = await findSession(database, hash, clock());
  const tenant = stored && tenantOf(stored.kid);
  if (!stored || !tenant) return null;
  const principalId = tenant.wrapper
    .unwrap(stored.wrappedPrincipalId, sessionContext(stored.kid, hash))
    .toString();
  const { kid, principal, expiresAt } = stored;
  return { kid, principal, principalId, expiresAt };
}
