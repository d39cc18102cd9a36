import type { Json } from '../lib/canonical-json.ts';

/** The audit log: who did what to what, by keyed reference. No id of a person stands in it, so that it outlives an erasure. */

export const AUDIT_ACTIONS = [
  'contest.filed',
  'contest.claimed',
  'contest.released',
  'contest.asked',
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
  'retention.run',
  'staff.signed-in',
  'staff.signed-out',
  'staff.session-revoked',
  'audit.exported',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export type ActorRole = 'subject' | 'reviewer' | 'dpo' | 'operator' | 'system';

export interface Actor {
  readonly role: ActorRole;
  /** Keyed reference. */
  readonly ref: string;
}

export interface AuditEvent {
  readonly kid: string;
  readonly at: number;
  readonly actor: Actor;
  readonly action: AuditAction;
  /** Keyed reference of what it was done to. */
  readonly object: string | null;
  /** Words and numbers of closed sets: an outcome, counts, a receipt's id. Never an id of a person, never free text. */
  readonly detail: { readonly [name: string]: Json };
}

/** What a row commits to, in one spelling. `detail` is the stored text. */
export function auditText(row: {
  readonly at: number;
  readonly role: string;
  readonly actor: string;
  readonly action: string;
  readonly object: string | null;
  readonly detail: string;
}): string {
  return JSON.stringify([Number(row.at), row.role, row.actor, row.action, row.object, row.detail]);
}
