import type { Actor, ActorRole } from '../lib/act.ts';
import { hmacSha256 } from '../lib/crypto.ts';
import type { Json } from '../lib/json.ts';

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

/**
 * A staff member or subject, by the issuer's name for them (OIDC core 1.0 section 5.7: `iss` and `sub`
 * together).
 */
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
