import { type PrincipalSession, SESSION_TTL_MS } from '../auth/session.ts';
import type { Database } from '../db/db.ts';
import { purge } from '../db/purge.ts';
import { holdTenant } from '../db/tenant-hold.ts';
import { MINUTE } from '../lib/clock.ts';
import { type Columns, fromColumns, toColumns } from '../lib/columns.ts';

export interface StoredSession extends Omit<PrincipalSession, 'principalId'> {
  readonly hash: string;
  /** The principalId under the tenant's key: an answer has to name it, the table must not. */
  readonly wrappedPrincipalId: string;
  /** The API key that opened it. */
  readonly keyId: string;
}

/** @param since when the tenant was made */
export async function insertSession(database: Database, session: StoredSession, since: number) {
  await database.transaction(async (tx) => {
    await holdTenant(tx, session.kid, since);
    await tx('principal_sessions').insert(toColumns(session));
  });
}

/** Only while the key that opened it is there and not revoked, whatever this process knows of keys. */
export async function findSession(database: Database, hash: string, now: number) {
  const [row]: readonly Columns<StoredSession>[] = await database
    .read('principal_sessions as s')
    .join('api_keys as k', (on) => {
      on.on('k.kid', 's.kid').andOn('k.id', 's.key_id').andOnNull('k.revoked_at');
    })
    .where('s.hash', hash)
    .where('s.expires_at', '>', now)
    // Opened while a clock was ahead: it would live for as long as that was.
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
