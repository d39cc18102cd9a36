import type { ConsentChoice } from '../schema/consent.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import type { PrincipalState } from './decide.ts';
import type { PlannedEntry } from './plan-write.ts';

export interface StateQuery {
  readonly kid: string;
  /** Keyed reference of the principal. */
  readonly principal: string;
  readonly purpose: string;
}

/**
 * Reads are batched and always from the database: a withdrawal that was answered is seen by the very next read on every
 * node.
 */
export interface ConsentStateReader {
  read(query: StateQuery): Promise<PrincipalState>;
  /** All of them from one snapshot. */
  readAll(queries: readonly StateQuery[]): Promise<readonly PrincipalState[]>;
}

export interface PlacedEntry {
  readonly purpose: string;
  readonly choice: ConsentChoice;
  readonly seq: number;
  readonly hash: string;
}

export interface Notification {
  readonly webhook: string;
  readonly event: WebhookEvent;
  readonly sealed: string;
}

export interface AppendRequest {
  readonly kid: string;
  /** When the tenant was made: a later one under its kid is another, and gets nothing of this. */
  readonly since: number;
  /** The tenant's key that wraps the keys of its principals. */
  readonly wrapKey: Uint8Array;
  readonly principalId: string;
  readonly principal: string;
  readonly entries: readonly PlannedEntry[];
  /** Undefined leaves what is known of GPC as it is. */
  readonly gpc: boolean | undefined;
  readonly isGrant: boolean;
  readonly now: number;
  /** What webhooks are told of an entry once its place is known; sealed, because it may name a person. */
  readonly notify: (entry: PlacedEntry) => readonly Notification[];
  /** The caller's Idempotency-Key with the hash of what it asked for. */
  readonly idempotency: { readonly caller: string; readonly key: string; readonly bodyHash: string } | null;
}

export interface Appended {
  readonly entries: readonly { readonly purpose: string; readonly seq: number; readonly hash: string }[];
}

/**
 * Appends to the tenant's log, in the order of commits, without gaps. Durable before it answers; entries, openings and
 * state commit together. A known Idempotency-Key answers what it answered before, or `conflict` for another body.
 * Requests share a commit, and no failure: what is wrong with one principal or tenant is theirs alone.
 * @throws {Unavailable} when nothing was written
 * @throws {TenantGone}
 */
export interface ConsentAppender {
  append(request: AppendRequest): Promise<Appended | 'conflict'>;
}
