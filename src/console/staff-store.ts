import type { Knex } from 'knex';
import { writeAct, writeAudit } from '../audit/audit-store.ts';
import type { StaffRole } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import { tryLockTenant } from '../db/meta-store.ts';
import { type Columns, fromColumns, requireNone, toColumns } from '../db/sql.ts';
import type { Act } from '../lib/act.ts';

/**
 * Stores the staff who sign in with a passkey: invites, registers
 * and removes them. Names are unique across all tenants.
 */

export interface StaffMember {
  readonly kid: string;
  readonly id: string;
  readonly name: string;
  readonly role: StaffRole;
  /** SHA-256 of the invitation; null once it was used. */
  readonly inviteHash: string | null;
  readonly inviteUntil: number;
  /** SHA-256 of the credential's id; null until they joined. */
  readonly credential: string | null;
  readonly publicKey: string | null;
  readonly counter: number;
  readonly createdAt: number;
  readonly joinedAt: number | null;
  readonly removedAt: number | null;
}

type Row = Columns<StaffMember>;

const rowToMember = (row: Row): StaffMember => fromColumns<StaffMember>(row);

const CLEARED = { invite_hash: null, credential: null, public_key: null };

async function findMember(db: Knex, columns: Partial<Row>): Promise<StaffMember | null> {
  const row = await db<Row>('staff').where(columns).whereNull('removed_at').first();
  return row ? rowToMember(row as Row) : null;
}

export const findInvited = ({ read }: Database, inviteHash: string): Promise<StaffMember | null> =>
  findMember(read, { invite_hash: inviteHash });

export const findByCredential = ({ read }: Database, credential: string): Promise<StaffMember | null> =>
  findMember(read, { credential });

export const findByName = ({ read }: Database, name: string): Promise<StaffMember | null> =>
  findMember(read, { name });

/** True as soon as anyone was invited, even if they have not registered a passkey yet. */
export const hasStaff = async ({ read }: Database): Promise<boolean> => (await findMember(read, {})) !== null;

export async function listStaff({ read }: Database): Promise<readonly StaffMember[]> {
  const rows = await read<Row>('staff').whereNull('removed_at').orderBy('name');
  return (rows as Row[]).map(rowToMember);
}

/**
 * A new invitation replaces an unused one.
 * @returns false if another person has the name, or the tenant was removed
 */
export function inviteStaff(database: Database, member: StaffMember, by: Act): Promise<boolean> {
  const { kid, id, name, role } = member;
  return database.transaction(async (tx) => {
    if (!(await tryLockTenant(tx, kid))) return false;
    const namesake = await findMember(tx, { name });
    if (namesake && (namesake.joinedAt !== null || namesake.kid !== kid)) return false;
    if (namesake) await tx('staff').where({ kid, id: namesake.id }).delete();
    await tx('staff').insert(toColumns(member));
    await writeAct(tx, kid, by, 'staff.invited', { id, role });
    return true;
  });
}

/**
 * The sessions of the person end too.
 * @param ref keyed reference of the person
 * @returns false if they were already removed
 */
export function removeStaff(
  database: Database,
  { kid, id, name, role }: StaffMember,
  ref: string,
  by: Act,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const row = tx('staff').where({ kid, id }).whereNull('removed_at');
    const removedCount = await row.clone().update({ ...CLEARED, removed_at: by.at });
    const failure = `staff member ${name} is not removed`;
    await requireNone(tx, row, failure);
    const passkeys = tx('staff').where({ kid, id }).whereNotNull('credential');
    await requireNone(tx, passkeys, `${failure}, as the passkey remains`);
    if (removedCount === 0) return false;
    const sessions = tx('console_sessions').where({ kid, actor: ref });
    await sessions.clone().delete();
    await requireNone(tx, sessions, `${failure}, as a session remains`);
    await writeAct(tx, kid, by, 'staff.removed', { id, role });
    return true;
  });
}

export type RegisteredPasskey = Readonly<{ credential: string; publicKey: string; counter: number }>;

/** @returns false if the invitation was used meanwhile, or the member was removed */
export async function joinStaff(
  tx: Knex.Transaction,
  { kid, id, role, inviteHash }: StaffMember,
  joined: RegisteredPasskey,
  { ref, at }: { readonly ref: string; readonly at: number },
): Promise<boolean> {
  const row = tx('staff').where({ kid, id, invite_hash: inviteHash }).whereNull('removed_at');
  const changed = await row.update({ ...toColumns(joined), invite_hash: null, joined_at: at });
  if (changed === 0) return false;
  const detail = { id, role };
  await writeAudit(tx, { kid, at, actor: { role, ref }, action: 'staff.joined', object: null, detail });
  return true;
}

/** @returns false if another sign-in changed the counter first, or the member was removed */
export async function raiseCounter(tx: Knex.Transaction, member: StaffMember, counter: number) {
  const { kid, id, credential } = member;
  const row = tx('staff').where({ kid, id, credential, counter: member.counter }).whereNull('removed_at');
  return (await row.update({ counter })) === 1;
}
