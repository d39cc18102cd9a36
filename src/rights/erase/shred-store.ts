import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { eraseAnswers } from '../../consent/append-store.ts';
import { endJoins } from '../../consent/join-store.ts';
import type { Notification } from '../../consent/plan-write.ts';
import { cellOf, hasRowLocks, requireNone } from '../../db/sql.ts';
import { createMasterKey, principalKeyContext } from '../../keys/master-key.ts';
import { personalEntry } from '../../ledger/entries.ts';
import { appendEntries } from '../../log/entries-store.ts';
import { enqueue } from '../../notify/outbox-store.ts';
import type { StateMac } from '../../tenants/state-mac.ts';
import { CIPHERTEXT_START } from './rows-store.ts';

/** @returns true when rows are left that an erasure of this principal would delete */
export async function isPrincipalKnown(read: Knex, kid: string, principal: string): Promise<boolean> {
  const keys = read('consent_principals').where({ kid, principal }).whereNotNull('wrapped_key');
  const sessions = read('principal_sessions').where({ kid, principal });
  return (await cellOf(keys, 'kid')) !== undefined || (await cellOf(sessions, 'kid')) !== undefined;
}

const SALT_BYTES = 16;
const ERASED_DETAIL = { policyVersion: null, gpc: false, source: 'erasure', expiresAt: null } as const;

export interface ShredTarget {
  /** Makes the webhook events once the entry has its number. */
  readonly notify: (seq: number) => readonly Notification[];
  readonly kid: string;
  readonly principal: string;
  readonly principalId: string;
  readonly wrapKey: Uint8Array;
  readonly stateMac: StateMac;
}

/** The salts and the encrypted principalIds of a principal: no file may keep them after an erasure. */
async function readSecrets(tx: Knex.Transaction, person: Pick<ShredTarget, 'kid' | 'principal'>) {
  const salts = (await tx('consent_openings').where(person).pluck('salt')) as string[];
  const opened = (await tx('consent_openings').where(person).distinct().pluck('principal_id')) as (
    | string
    | null
  )[];
  const sessions = (await tx('principal_sessions').where(person).pluck('wrapped_principal_id')) as string[];
  const ids = [...opened, ...sessions].filter((id) => id !== null);
  return [...salts, ...ids.map((id) => id.slice(0, CIPHERTEXT_START))];
}

/**
 * Tables that open the entries of a principal, or answer for it. Its row in `consent_principals` stays
 * without the key, and says when.
 */
export const SHREDS = [
  'consent_openings',
  'consent_state',
  'idempotency_keys',
  'principal_sessions',
  'webhook_outbox',
] as const;

/**
 * Crypto-shredding: deletes the principal's key, every opening and the state; the log keeps its entries,
 * which can no longer be opened, and says `subject.erased`. A keyed tombstone stays and answers `erased`
 * until a new grant. Idempotent. The head of the log has to be locked.
 * @returns how many of the principal's entries no longer open, the entry that says so, and the deleted
 * secrets as they were stored
 */
export async function shredWithin(tx: Knex.Transaction, target: ShredTarget, now: number) {
  const { kid, principal, principalId } = target;
  const wrapped = await cellOf<string | null>(
    tx('consent_principals').where({ kid, principal }),
    'wrapped_key',
  );
  await endJoins(tx, target);
  const secrets = await readSecrets(tx, { kid, principal });
  await eraseAnswers(tx, kid, principal);
  let openings = 0;
  for (const table of SHREDS) {
    const deletedCount = await tx(table).where({ kid, principal }).delete();
    if (table === 'consent_openings') openings = deletedCount;
    // On PostgreSQL a session may be opened meanwhile: the head of the log locks the evidence alone.
    if (!hasRowLocks(tx) || table.startsWith('consent_'))
      await requireNone(tx, tx(table).where({ kid, principal }), `rows in ${table} are not erased`);
  }
  if (wrapped == null) return { openings: 0, seq: null, secrets };
  const context = principalKeyContext(kid, principal);
  const key = createMasterKey(target.wrapKey, randomBytes).unwrap(wrapped, context);
  const opening = { key, salt: randomBytes(SALT_BYTES), principalId, detail: ERASED_DETAIL };
  const entry = personalEntry({ type: 'subject.erased', at: now, purpose: null }, opening);
  const [appended] = await appendEntries(tx, kid, [entry], { macs: target.stateMac });
  key.fill(0);
  const notifications = appended ? target.notify(appended.seq) : [];
  await enqueue(
    tx,
    notifications.map((notification) => ({ ...notification, kid, principal, requestId: null, at: now })),
  );
  const row = { gpc: false, except: null, erasedAt: now, account: null, withheld: null };
  const mac = target.stateMac.ofPrincipal(principal, row);
  const erased = {
    wrapped_key: null,
    gpc: false,
    gpc_except: null,
    erased_at: now,
    account: null,
    withheld: null,
    mac,
  };
  const stored = tx('consent_principals').where({ kid, principal });
  await stored.clone().update(erased);
  await requireNone(tx, stored.whereNotNull('wrapped_key'), 'the key of the consent record is not destroyed');
  return { openings, seq: appended?.seq ?? null, secrets: [...secrets, wrapped] };
}
