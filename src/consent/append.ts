import type { ConsentChoice } from '../schema/consent.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import type { PlannedEntry } from './plan-write.ts';
import type { StateMac } from './state-mac.ts';

/** What is appended to a tenant's log by a write of consent, and what comes of it. */

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
  readonly stateMac: StateMac;
  readonly principalId: string;
  readonly principal: string;
  readonly entries: readonly PlannedEntry[];
  /** True opts out of every purpose; false ends that for the purposes that this write grants; undefined changes nothing. */
  readonly gpc: boolean | undefined;
  readonly isGrant: boolean;
  readonly now: number;
  /** What webhooks get about an entry once its place is known; encrypted, because it may name a person. */
  readonly notify: (entry: PlacedEntry) => readonly Notification[];
  /** The caller's Idempotency-Key with the hash of what it asked for. */
  readonly idempotency: { readonly caller: string; readonly key: string; readonly bodyHash: string } | null;
}

export interface Appended {
  readonly entries: readonly { readonly purpose: string; readonly seq: number; readonly hash: string }[];
}
