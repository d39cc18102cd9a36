import { DAY, isoTime } from '../lib/clock.ts';
import { decodeBase64Url, sha256Text } from '../lib/crypto.ts';
import type { ConsentChoice } from '../schema/consent.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import type { DefinedPurpose } from '../tenants/purposes.ts';
import type { StateMac } from '../tenants/state-mac.ts';

/** Plans the entries of a grant, denial or withdrawal. Pure, before anything is locked. */

export type WriteAction = 'grant' | 'deny' | 'withdraw';

/**
 * Source of a choice: the tenant's backend, the person in a session, a browser by its own secret, an agent
 * that signed the request, or another system's record.
 */
export type WriteSource = 'backend' | 'session' | 'browser' | 'cli' | 'import' | `agent:${string}`;

/** A choice that another system recorded before gpd did. */
export interface ImportedRecord {
  /** Epoch milliseconds; null if unknown. */
  readonly recordedAt: number | null;
  readonly evidence: string | undefined;
}

export interface WriteCommand {
  readonly action: WriteAction;
  readonly purposes: readonly string[];
  readonly policyVersion: number;
  /** Undefined if the write does not mention GPC; then the stored state stays. */
  readonly gpc: boolean | undefined;
  /** A specific yes to one purpose whose policy is `ask`. */
  readonly overGpc?: boolean | undefined;
  readonly source: WriteSource;
  readonly imported?: ImportedRecord | undefined;
  /**
   * The definition that the person was shown, by purpose; a purpose without one has its present definition.
   */
  readonly definitions?: Readonly<Record<string, number>> | undefined;
}

export type PurposeTerms = Pick<DefinedPurpose, 'gpc' | 'ttlDays' | 'definition'>;

export type PlannedEntry = ReturnType<typeof planWrite>[number];

const CHOICE_OF: Readonly<Record<WriteAction, ConsentChoice>> = {
  grant: 'granted',
  deny: 'denied',
  withdraw: 'withdrawn',
};

/**
 * Makes one entry per purpose. A denial that only a GPC signal made is recorded as that signal, never as a
 * choice of the person. A grant under GPC is recorded as a grant, without effect while the signal lasts.
 */
export function planWrite(command: WriteCommand, termsOf: (purpose: string) => PurposeTerms, now: number) {
  const { action, policyVersion, source, imported } = command;
  const recordedAt = imported?.recordedAt ?? null;
  const record = {
    ...(recordedAt !== null && { recordedAt: isoTime(recordedAt) }),
    ...(imported?.evidence !== undefined && { evidence: imported.evidence }),
  };
  const gpc = command.gpc === true;
  const over = command.overGpc === true && { overGpc: true as const };
  return command.purposes.map((purpose) => {
    const terms = termsOf(purpose);
    const bySignal = action === 'deny' && gpc && terms.gpc !== 'ignore';
    const choice: ConsentChoice = bySignal ? 'gpc-opt-out' : CHOICE_OF[action];
    /** Epoch milliseconds, or null. */
    const expiresAt = action === 'grant' ? (recordedAt ?? now) + terms.ttlDays * DAY : null;
    const definition = command.definitions?.[purpose] ?? terms.definition;
    const shown = definition !== null && { definition };
    // Detail that the entry's body commits to (contract section 7, contract-2 section 22).
    return {
      purpose,
      choice,
      detail: { policyVersion, gpc, source, expiresAt, ...shown, ...over, ...record },
    };
  });
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
  readonly ciphertext: string;
}

export interface AppendRequest {
  readonly kid: string;
  /**
   * The creation time of the tenant. A tenant created later with the same kid is a different one and receives
   * nothing.
   */
  readonly since: number;
  /** The tenant's key that wraps the keys of its principals. */
  readonly wrapKey: Uint8Array;
  readonly stateMac: StateMac;
  readonly principalId: string;
  readonly principal: string;
  readonly entries: readonly PlannedEntry[];
  /**
   * True opts out of every purpose; false ends that for the purposes that this write grants; undefined
   * changes nothing.
   */
  readonly gpc: boolean | undefined;
  readonly isGrant: boolean;
  /** Compared with the stored choice under the lock of the log: an older record replaces nothing. */
  readonly imported?: ImportedRecord | undefined;
  readonly now: number;
  /**
   * Makes the webhook events of an entry once its place is known; they are encrypted, because they may name a
   * person.
   */
  readonly notify: (entry: PlacedEntry) => readonly Notification[];
  /** The caller's Idempotency-Key with the hash of the request. */
  readonly idempotency: { readonly caller: string; readonly key: string; readonly bodyHash: string } | null;
}

export interface Appended {
  readonly entries: readonly Omit<PlacedEntry, 'choice'>[];
}

const SECRET_BYTES = 32;

/** A browser principal's id: `b_` + base64url(SHA-256(its 32 secret bytes)). */
export function browserPrincipalId(principalSecret: string): string | null {
  const bytes = decodeBase64Url(principalSecret);
  return bytes?.length === SECRET_BYTES ? `b_${sha256Text(bytes)}` : null;
}
