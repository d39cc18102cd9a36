import type { ConsentError } from './errors.ts';
import type { ProofRef } from './wire.ts';

/** Arguments and results of the client, with the names of the wire (SPEC.md section 2). */

export interface Check {
  /** Your own id of the person. */
  readonly principalId: string;
  readonly purpose: string;
  /** Decide only from a log that has reached this entry, such as the `seq` of a write. */
  readonly minSeq?: number | undefined;
}

export type KnownReason =
  | 'unknown-purpose'
  | 'erased'
  | 'gpc-opt-out'
  | 'withdrawn'
  | 'denied'
  | 'expired'
  | 'doubted'
  | 'policy-outdated'
  | 'never-asked'
  | 'granted'
  | 'unavailable';

/** `unknown` if no verdict tells, or the server does not send it. */
export type Given = 'person' | 'agent' | 'automation' | 'unknown' | (string & {});

export interface Decision {
  readonly allowed: boolean;
  /** A known reason, or one of a newer server. */
  readonly reason: KnownReason | (string & {});
  /** Null only if the SDK denied because the check could not be decided. */
  readonly proof: ProofRef | null;
  readonly policyVersion: number | null;
  /** ISO time, or null for never. */
  readonly expiresAt: string | null;
  /** Origin of the grant behind the decision: `person`, `agent`, `automation` or `unknown`. */
  readonly given: Given;
  /** The reference of the person that the events `subject.erased` and `subject.linked` carry. */
  readonly subject?: string;
  /** The reason why the check could not be decided; set exactly if the SDK itself answered `unavailable`. */
  readonly error: ConsentError | null;
}

export interface ConsentWrite {
  readonly principalId: string;
  readonly purposes: readonly string[];
  /** Version of the text that was shown; by default the current one. */
  readonly policyVersion?: number | undefined;
  /** True opts out of every purpose that honours Global Privacy Control; false ends that for the purposes of this grant only. */
  readonly gpc?: boolean | undefined;
}

export interface ConsentGrant extends ConsentWrite {
  /** A specific consent despite the signal, with `gpc: true` and one purpose whose policy is `ask`. */
  readonly overGpc?: boolean | undefined;
}

export interface WriteResult extends ProofRef {
  /** One entry per purpose. `seq` and `hash` of the result are those of the last entry. */
  readonly entries: readonly (ProofRef & { readonly purpose: string })[];
}

export interface PurposeState {
  readonly purpose: string;
  readonly choice: string | null;
  readonly at: string | null;
  readonly allowed: boolean;
  readonly reason: KnownReason | (string & {});
  readonly proof: ProofRef;
  readonly policyVersion: number | null;
  readonly expiresAt: string | null;
  readonly given?: Given;
}

export interface ConsentState {
  readonly principalId: string;
  /** The reference of the person that the events `subject.erased` and `subject.linked` carry. */
  readonly subject?: string;
  readonly purposes: readonly PurposeState[];
}

export interface HistoryEvent {
  readonly seq: number;
  readonly type: string;
  readonly purpose: string;
  readonly time: string;
  readonly policyVersion: number | null;
  readonly gpc: boolean;
  readonly source: string;
  readonly expiresAt: string | null;
  /** Present if the person agreed despite the signal. */
  readonly overGpc?: true;
}

export interface History {
  readonly principalId: string;
  /** Newest first. */
  readonly events: readonly HistoryEvent[];
  /** Requests the next page; null on the last. */
  readonly nextCursor: string | null;
}

export interface Page {
  /** The `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}

/** The principal of a browser, as the banner keeps it. */
export interface BrowserPrincipal {
  readonly principalId: string;
  readonly principalSecret: string;
}

export interface PurposeDefinition {
  readonly id: string;
  readonly title: string;
  readonly description?: string | undefined;
  readonly lawfulBasis?: string | undefined;
  readonly gpc?: 'opt-out' | 'ask' | 'ignore' | undefined;
  readonly ttlDays?: number | undefined;
  /** False: the banner never asks for it. */
  readonly banner?: boolean | undefined;
  /** False: the change asks nobody again. */
  readonly material?: boolean | undefined;
}

export interface PolicyDefinition {
  readonly text: string;
  /** True: everybody is asked again. */
  readonly material: boolean;
}

export interface Session {
  readonly token: string;
  readonly principalId: string;
  readonly expiresAt: string;
  /**
   * The reference that the events `subject.erased` and `subject.linked` carry. gpd always sends it; the SDK also
   * reads an answer without it.
   */
  readonly subject?: string;
}

export interface Receipt {
  readonly receipt: Readonly<Record<string, unknown>>;
  /** Compact JWS over the receipt, EdDSA under the key of the tenant's log. */
  readonly jws: string;
  readonly jwk: Readonly<Record<string, unknown>>;
}

/** The verdict of a visit. */
export interface Verdict {
  readonly requestId: string;
  readonly class: 'human' | 'declared_agent' | 'undeclared_automation' | 'unknown' | (string & {});
  readonly reason: string;
  readonly visitorId: string | null;
  readonly confidence: number;
  readonly suspectScore: number | null;
  readonly rules: readonly { readonly id: string; readonly weight: number; readonly text: string }[];
  readonly policyVersion: string;
  readonly decidedAt: string;
  /** A contest is open: do not act on this verdict. */
  readonly restricted: boolean;
  /** The reference that the event `decision.erased` carries. */
  readonly ref?: string;
  /** The reason of this visit, as the page named it in `identify({ context })`. */
  readonly context?: string;
  /** A key of the device: a passkey distinguished it from identical ones. It does not say who uses it. */
  readonly attested?: { readonly by: string; readonly deviceBound: boolean } | undefined;
  readonly [time: string]: unknown;
}

export type KnownOutcome = 'fraud' | 'chargeback' | 'passed-step-up' | 'false-alarm' | 'other';

export interface OutcomeTime {
  /** Time when it became known (RFC 3339); by default the time of the report. */
  readonly at?: string | undefined;
}

/** The stored outcome of a decision. */
export interface ReportedOutcome {
  readonly requestId: string;
  readonly outcome: KnownOutcome | (string & {});
  /** ISO time when the outcome became known. */
  readonly at: string;
}

export interface Health {
  readonly status: 'ok';
  readonly version: string;
}

export interface CallOptions {
  /** Cancels at once; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Total time of this call instead of the client's; at most 60000. */
  readonly timeoutMs?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Set it to be able to repeat the write later; by default each call gets a random one. */
  readonly idempotencyKey?: string | undefined;
}

/** A visitor's choices, read from the cookie `gpd_consent`. */
export interface VisitorState {
  /** The purposes that were granted. */
  readonly purposes: readonly string[];
  /** The newest entry of the log about this person. */
  readonly seq: number;
  /** ISO time when gpd signed it. */
  readonly at: string;
}

/** Without a valid state `purposes` is empty, and `seq` and `at` are null. */
export interface CurrentState {
  readonly purposes: readonly string[];
  readonly seq: number | null;
  readonly at: string | null;
  /** Value of a Set-Cookie header to send with the page, or null. */
  readonly setCookie: string | null;
}

/** The purposes that are allowed for one request. */
export interface Permissions {
  /** The allowed purposes, in the order of the question. */
  readonly purposes: readonly string[];
  /** Value of a Set-Cookie header to send with the page, or null. */
  readonly setCookie: string | null;
  /** False for a purpose that `may` was not asked about. */
  allows(purpose: string): boolean;
}

export interface MayOptions extends CallOptions {
  /** Your own id of the person who is signed in: gpd is asked about this account. */
  readonly principalId?: string | undefined;
}
