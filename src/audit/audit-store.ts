import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { lockTenant, REMOVING } from '../db/meta-store.ts';
import { cellOf } from '../db/sql.ts';
import { commitAudit } from '../ledger/entries.ts';
import type { Act, Actor, ActorRole, InstallationAct } from '../lib/act.ts';
import { hmacSha256 } from '../lib/crypto.ts';
import type { Json } from '../lib/json.ts';
import { weakensSafeguard } from './safeguards.ts';

/**
 * The audit log: actor, action and target by keyed reference. It contains no id of a person, so that it
 * outlives an erasure.
 */

export const AUDIT_ACTIONS = [
  'contest.filed',
  'contest.claimed',
  'contest.released',
  'contest.asked',
  'contest.answered',
  'contest.extended',
  'contest.proposed',
  'contest.resolved',
  'complaint.received',
  'complaint.acknowledged',
  'complaint.answered',
  'principal.linked',
  'transparency.viewed',
  'dsar.exported',
  'dsar.staff-exported',
  'subject.erased',
  'subject.searched',
  'hold.placed',
  'hold.released',
  'staff.signed-in',
  'staff.signed-out',
  'staff.session-revoked',
  'staff.invited',
  'staff.joined',
  'staff.removed',
  'audit.exported',
  'decision.read',
  'evidence.made',
  'tenant.set',
  'apikey.created',
  'apikey.revoked',
  'key.rotated',
  'key.destroyed',
  'purpose.defined',
  'policy.published',
  'agent.added',
  'agent.removed',
  'webhook.added',
  'webhook.removed',
  'backup.made',
  'restore.done',
  'mcp.asked',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export interface AuditEvent {
  readonly kid: string;
  readonly at: number;
  readonly actor: Actor;
  readonly action: AuditAction;
  /** Keyed reference of the target. */
  readonly object: string | null;
  /**
   * Words and numbers of closed sets: an outcome, counts, a receipt's id. Never an id of a person, never free
   * text.
   */
  readonly detail: { readonly [name: string]: Json };
}

/** A row of the log, as read. */
export interface AuditRow extends Pick<AuditEvent, 'at' | 'action' | 'object'> {
  readonly seq: number;
  readonly role: ActorRole;
  readonly actor: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** The fields that a row's commitment covers; `detail` is the stored text. */
export interface AuditFields extends Omit<AuditRow, 'seq' | 'detail'> {
  readonly detail: string;
}

export interface AuditFilter {
  readonly action?: AuditAction | undefined;
  readonly role?: ActorRole | undefined;
  readonly actor?: string | undefined;
  readonly object?: string | undefined;
  /** Epoch milliseconds, inclusive. */
  readonly from?: number | undefined;
  /** Epoch milliseconds, exclusive. */
  readonly to?: number | undefined;
  /** Pagination: rows before this one. */
  readonly before?: number | undefined;
}

/** The fields as one canonical text. */
export function auditText(row: AuditFields): string {
  return JSON.stringify([Number(row.at), row.role, row.actor, row.action, row.object, row.detail]);
}

/** Things that a record may refer to without naming them. */
export type RefKind = 'actor' | 'addressee' | 'contest' | 'durable' | 'principal' | 'request';

/**
 * Keyed reference: stable within a tenant, meaningless without its key. Receipts, the audit log and
 * tombstones contain these instead of ids, so that they may outlive the described data.
 */
export function rightsRef(rightsKey: Uint8Array, kind: RefKind, id: string): string {
  return hmacSha256(rightsKey, `${kind}|${id}`).toString('base64url');
}

/** A staff member or subject by `iss` and `sub` together (OIDC core 1.0 section 5.7). */
export function actorRef(rightsKey: Uint8Array, issuer: string, sub: string): string {
  return rightsRef(rightsKey, 'actor', JSON.stringify([issuer, sub]));
}

/** A handle in groups of four, which cannot be reversed but compared with that of another visit. */
export function displayHandle(rightsKey: Uint8Array, durable: string): string {
  const hex = hmacSha256(rightsKey, `handle|${durable}`).toString('hex').slice(0, 12);
  return hex.replace(/(.{4})(?=.)/g, '$1-');
}

/** The source of an operator's name: the account at the command line, or the API key. */
export type OperatorSource = 'gpd cli' | 'gpd api key';

export function operatorActor(rightsKey: Uint8Array, source: OperatorSource, name: string): Actor {
  return { role: 'operator', ref: actorRef(rightsKey, source, name) };
}

/** Columns of `ledger_heads`: the end of the anchored hours of verdicts and of the audit log. */
export type AnchoredTo = 'verdicts_sealed_to' | 'audit_sealed_to';

/** The end of the last anchored hour; 0 also without a log. */
export async function anchoredTo(db: Knex, column: AnchoredTo, kid: string): Promise<number> {
  return (await cellOf<number>(db('ledger_heads').where({ kid }), column)) ?? 0;
}

const SALT_BYTES = 16;

/** One row, in the transaction of the change that it records. */
export async function writeAudit(tx: Knex.Transaction, event: AuditEvent): Promise<void> {
  const { kid, actor, action, object } = event;
  await lockTenant(tx, kid);
  // An append-only log continues after its anchored hours, even if the clock was set back.
  const at = Math.max(event.at, await anchoredTo(tx, 'audit_sealed_to', kid));
  const row = {
    at,
    role: actor.role,
    actor: actor.ref,
    action,
    object,
    detail: JSON.stringify(event.detail),
  };
  const salt = randomBytes(SALT_BYTES);
  const commitment = commitAudit(salt, kid, auditText(row));
  const unsent = weakensSafeguard(action, event.detail) ? 1 : 0;
  await tx('audit_log').insert({ kid, ...row, salt: salt.toString('base64url'), commitment, unsent });
}

/** Records an action that changed nothing else, such as an export. */
export function recordAudit(database: Database, event: AuditEvent): Promise<void> {
  return database.transaction((tx) => writeAudit(tx, event));
}

type Detail = Readonly<Record<string, Json>>;

/** Records an act of an operator or of gpd, in the transaction of its change. */
export function writeAct(tx: Knex.Transaction, kid: string, act: Act, action: AuditAction, detail: Detail) {
  const { role, ref, at, apiKey } = act;
  const by = apiKey === undefined ? {} : { apiKey };
  return writeAudit(tx, {
    kid,
    at,
    actor: { role, ref },
    action,
    object: null,
    detail: { ...detail, ...by },
  });
}

/** Writes one row per tenant that is not being removed: an act on the installation concerns each. */
export async function writeActForAll(
  tx: Knex.Transaction,
  by: InstallationAct,
  action: AuditAction,
  detail: Detail,
): Promise<void> {
  const kids = (await tx('tenants').where('revision', '>', REMOVING).orderBy('kid').pluck('kid')) as string[];
  for (const kid of kids) {
    const actor = by.actorOf(kid);
    if (actor) await writeAct(tx, kid, { ...actor, at: by.at }, action, detail);
  }
}

export async function listAudit(database: Database, kid: string, filter: AuditFilter, limit: number) {
  const query = database.read('audit_log').where({ kid });
  for (const name of ['action', 'role', 'actor', 'object'] as const) {
    const value = filter[name];
    if (value !== undefined) query.where(name, value);
  }
  if (filter.from !== undefined) query.where('at', '>=', filter.from);
  if (filter.to !== undefined) query.where('at', '<', filter.to);
  if (filter.before !== undefined) query.where('seq', '<', filter.before);
  const columns = ['seq', 'at', 'role', 'actor', 'action', 'object', 'detail'];
  const rows = (await query.orderBy('seq', 'desc').limit(limit).select(columns)) as (AuditFields &
    Pick<AuditRow, 'seq'>)[];
  return rows.map((row) => ({
    ...row,
    seq: Number(row.seq),
    at: Number(row.at),
    detail: JSON.parse(row.detail) as Record<string, unknown>,
  }));
}
