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
  /** The API key that opened it; null: a node of the release before opened it and noted none. */
  readonly keyId: string | null;
}

interface Row {
  readonly hash: string;
  readonly kid: string;
  readonly principal: string;
  readonly wrapped_principal_id: string;
  readonly expires_at: number;
  readonly key_id: string | null;
}

/** @param since when the tenant was made */
export async function insertSession(
  database: Database,
  session: StoredSession,
  since: number,
): Promise<void> {
  const { hash, kid, principal, expiresAt, keyId } = session;
  const row: Row = {
    hash,
    kid,
    principal,
    wrapped_principal_id: session.wrappedPrincipalId,
    expires_at: expiresAt,
    key_id: keyId,
  };
  await database.transaction(async (tx) => {
    await holdTenant(tx, kid, since);
    await tx('principal_sessions').insert(row);
  });
}

/** Only while the key that opened it is there and not revoked, whatever this process knows of keys. */
export async function findSession(
  database: Database,
  hash: string,
  now: number,
): Promise<StoredSession | null> {
  const rows: readonly Row[] = await database
    .read('principal_sessions as s')
    .leftJoin('api_keys as k', (on) => {
      on.on('k.kid', 's.kid').andOn('k.id', 's.key_id').andOnNull('k.revoked_at');
    })
    .where('s.hash', hash)
    .where('s.expires_at', '>', now)
    // Opened while a clock was ahead: it would live for as long as that was.
    .where('s.expires_at', '<=', now + SESSION_TTL_MS + MINUTE)
    .where((either) => void either.whereNull('s.key_id').orWhereNotNull('k.id'))
    .select('s.*');
  const [row] = rows;
  if (!row) return null;
  const { kid, principal } = row;
  return {
    hash,
    kid,
    principal,
    wrappedPrincipalId: row.wrapped_principal_id,
    expiresAt: Number(row.expires_at),
    keyId: row.key_id,
  };
}

/** Expired sessions and idempotency keys. */
export async function purgeExpired(database: Database, now: number): Promise<void> {
  const keys = { principal_sessions: ['hash'], idempotency_keys: ['kid', 'caller', 'key'] };
  for (const [table, key] of Object.entries(keys)) {
    await purge(database, table, key, (rows) => rows.where('expires_at', '<', now));
  }
}
