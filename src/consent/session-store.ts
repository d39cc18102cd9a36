import { SESSION_TTL_MS } from '../auth/session.ts';
import type { Database } from '../db/db.ts';
import { purge } from '../db/purge.ts';
import { holdTenant } from '../db/tenant-hold.ts';
import { MINUTE } from '../lib/clock.ts';

export interface StoredSession {
  readonly hash: string;
  readonly kid: string;
  readonly principal: string;
  /** The principalId under the tenant's key: an answer has to name it, the table must not. */
  readonly wrappedPrincipalId: string;
  readonly expiresAt: number;
}

interface Row {
  readonly hash: string;
  readonly kid: string;
  readonly principal: string;
  readonly wrapped_principal_id: string;
  readonly expires_at: number;
}

/** @param since when the tenant was made */
export async function insertSession(
  database: Database,
  session: StoredSession,
  since: number,
): Promise<void> {
  const { hash, kid, principal, expiresAt } = session;
  const row: Row = {
    hash,
    kid,
    principal,
    wrapped_principal_id: session.wrappedPrincipalId,
    expires_at: expiresAt,
  };
  await database.transaction(async (tx) => {
    await holdTenant(tx, kid, since);
    await tx('principal_sessions').insert(row);
  });
}

export async function findSession(
  database: Database,
  hash: string,
  now: number,
): Promise<StoredSession | null> {
  const row = await database
    .read<Row>('principal_sessions')
    .where({ hash })
    .where('expires_at', '>', now)
    // Opened while a clock was ahead: it would live for as long as that was.
    .where('expires_at', '<=', now + SESSION_TTL_MS + MINUTE)
    .first();
  if (!row) return null;
  const { kid, principal } = row;
  return {
    hash,
    kid,
    principal,
    wrappedPrincipalId: row.wrapped_principal_id,
    expiresAt: Number(row.expires_at),
  };
}

/** Expired sessions and idempotency keys. */
export async function purgeExpired(database: Database, now: number): Promise<void> {
  const keys = { principal_sessions: ['hash'], idempotency_keys: ['kid', 'caller', 'key'] };
  for (const [table, key] of Object.entries(keys)) {
    await purge(database, table, key, (rows) => rows.where('expires_at', '<', now));
  }
}
