import {
  createSessionToken,
  hashSecret,
  type PrincipalSession,
  SESSION_TTL_MS,
} from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import { lockTenant } from '../db/meta-store.ts';
import { purge } from '../db/purge.ts';
import { type Columns, fromColumns, toColumns } from '../db/sql.ts';
import { sessionContext } from '../keys/master-key.ts';
import { isoTime, MINUTE } from '../lib/clock.ts';
import type { Job } from '../lib/jobs.ts';
import type { Installation } from '../tenants/directory.ts';
import type { Tenant } from '../tenants/tenant.ts';

/** Sessions of principals: a person, verified by the tenant's backend (contract section 7). */

export type SessionParts = Pick<Installation, 'database' | 'clock' | 'random'>;

/** @param keyId the API key that opens the session; revoking the key ends it */
export async function openSession(
  { database, clock, random }: SessionParts,
  tenant: Tenant,
  principalId: string,
  keyId: string,
) {
  const token = createSessionToken(random);
  const hash = hashSecret(token);
  const expiresAt = clock() + SESSION_TTL_MS;
  const wrappedPrincipalId = tenant.wrapper.wrap(Buffer.from(principalId), sessionContext(tenant.kid, hash));
  const { kid, since } = tenant;
  const principal = tenant.refOf(principalId);
  await insertSession(database, { hash, kid, principal, wrappedPrincipalId, expiresAt, keyId }, since);
  return { token, principalId, subject: principal, expiresAt: isoTime(expiresAt) };
}

export async function readSession(
  { database, clock }: Omit<SessionParts, 'random'>,
  tenantOf: (kid: string) => Tenant | undefined,
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

export interface StoredSession extends Omit<PrincipalSession, 'principalId'> {
  readonly hash: string;
  /** The principalId, encrypted with the tenant's key: answers contain it, but the table must not. */
  readonly wrappedPrincipalId: string;
  /** The API key that opened it. */
  readonly keyId: string;
}

/** @param since when the tenant was made */
export async function insertSession(database: Database, session: StoredSession, since: number) {
  await database.transaction(async (tx) => {
    await lockTenant(tx, session.kid, since);
    await tx('principal_sessions').insert(toColumns(session));
  });
}

/**
 * Finds a session only while the key that opened it exists and is not revoked; this reads the database, not
 * the keys in memory.
 */
export async function findSession(database: Database, hash: string, now: number) {
  const [row]: readonly Columns<StoredSession>[] = await database
    .read('principal_sessions as s')
    .join('api_keys as k', (on) => {
      on.on('k.kid', 's.kid').andOn('k.id', 's.key_id').andOnNull('k.revoked_at');
    })
    .where('s.hash', hash)
    .where('s.expires_at', '>', now)
    // A session that was opened while a clock was ahead would live longer.
    .where('s.expires_at', '<=', now + SESSION_TTL_MS + MINUTE)
    .select('s.*');
  return row ? fromColumns<StoredSession>(row) : null;
}

/** Expired sessions and idempotency keys. */
export async function purgeExpired(database: Database, now: number): Promise<void> {
  const keys = { principal_sessions: ['hash'], idempotency_keys: ['kid', 'caller', 'key'] };
  for (const [table, key] of Object.entries(keys)) {
    await purge(database, table, key, (rows) => rows.where('expires_at', '<', now));
  }
}

export const consentJobs = ({ database }: Pick<Installation, 'database'>): readonly Job[] => [
  { name: 'purge-sessions', every: MINUTE, run: ({ now }) => purgeExpired(database, now) },
];
