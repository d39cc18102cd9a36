import type { ConsentError } from './errors.ts';

/** What goes in and comes out, in the words of the wire (SPEC.md section 2). */

/** The place of an entry in the tenant's log. */
export interface ProofRef {
  readonly seq: number;
  /** 64 lower-case hex digits: SHA-256(0x00 || entry). */
  readonly hash: string;
}

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

/** `unknown` where no verdict says, and of a server that does not say. */
export type Given = 'person' | 'agent' | 'automation' | 'unknown' | (string & {});

export interface Decision {
  readonly allowed: boolean;
  /** One of the known ones, or that of a later server. */
  readonly reason: KnownReason | (string & {});
  /** Null only when the SDK denied because nothing could be decided. */
  readonly proof: ProofRef | null;
  readonly policyVersion: number | null;
  /** ISO time, or null for never. */
  readonly expiresAt: string | null;
  /** Who gave the grant that it rests on: `person`, `agent`, `automation` or `unknown`. */
  readonly given: Given;
  /** Why nothing could be decided: set exactly when `reason` is `unavailable` and the SDK said so. */
  readonly error: ConsentError | null;
}

export interface ConsentWrite {
  readonly principalId: string;
  readonly purposes: readonly string[];
  /** The version of the text that was shown; the current one when absent. */
  readonly policyVersion?: number | undefined;
  /** True opts out of every purpose that heeds Global Privacy Control; false ends that for the purposes of this grant alone. */
  readonly gpc?: boolean | undefined;
}

export interface ConsentGrant extends ConsentWrite {
  /** A specific yes over the signal, with `gpc: true` and one purpose whose policy is `ask`. */
  readonly overGpc?: boolean | undefined;
}

export interface WriteResult extends ProofRef {
  /** One entry a purpose; `seq` and `hash` beside are the last one's. */
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
  /** Only where the person overruled the signal. */
  readonly overGpc?: true;
}

export interface History {
  readonly principalId: string;
  /** Newest first. */
  readonly events: readonly HistoryEvent[];
  /** For the next page; null on the last. */
  readonly nextCursor: string | null;
}

export interface Session {
  readonly token: string;
  readonly principalId: string;
  readonly expiresAt: string;
}

export interface Receipt {
  readonly receipt: Readonly<Record<string, unknown>>;
  /** Compact JWS over the receipt, EdDSA under the key of the tenant's log. */
  readonly jws: string;
  readonly jwk: Readonly<Record<string, unknown>>;
}

/** The verdict of one ingest. */
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
  /** A key of the device: a passkey distinguished it from identical ones. It does not say who uses it. */
  readonly attested?: { readonly by: string; readonly deviceBound: boolean } | undefined;
  readonly [more: string]: unknown;
}

export type KnownOutcome = 'fraud' | 'chargeback' | 'passed-step-up' | 'false-alarm' | 'other';

export interface OutcomeTime {
  /** When it became known, in RFC 3339; when the report comes in, if absent. */
  readonly at?: string | undefined;
}

/** What became of a decision, as it is stored. */
export interface ReportedOutcome {
  readonly requestId: string;
  readonly outcome: KnownOutcome | (string & {});
  /** When it became known: ISO time. */
  readonly at: string;
}

export interface Health {
  readonly status: 'ok';
  readonly version: string;
}

export interface CallOptions {
  /** Cancels at once; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** The whole time of this call, in place of the client's, shorter or longer; at most 60000. */
  readonly timeoutMs?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Name a write yourself to be able to repeat it later; else each call gets one of its own. */
  readonly idempotencyKey?: string | undefined;
}

/** What the client and the fake have in common: let your own code ask for this. */
export interface Consent {
  isAllowed(check: Check, options?: CallOptions): Promise<boolean>;
  canProcess(check: Check, options?: CallOptions): Promise<Decision>;
  canProcessMany(checks: readonly Omit<Check, 'minSeq'>[], options?: CallOptions): Promise<Decision[]>;
  grant(write: ConsentGrant, options?: WriteOptions): Promise<WriteResult>;
  deny(write: ConsentWrite, options?: WriteOptions): Promise<WriteResult>;
  withdraw(write: ConsentWrite, options?: WriteOptions): Promise<WriteResult>;
  state(principalId: string, options?: CallOptions): Promise<ConsentState>;
  history(
    principalId: string,
    page?: { readonly cursor?: string | undefined; readonly limit?: number | undefined },
    options?: CallOptions,
  ): Promise<History>;
  readonly sessions: { create(principalId: string, options?: CallOptions): Promise<Session> };
  receipt(seq: number, options?: CallOptions): Promise<Receipt>;
  proof(seq: number, options?: CallOptions): Promise<string>;
  decision(requestId: string, options?: CallOptions): Promise<Verdict>;
  reportOutcome(
    requestId: string,
    outcome: ReportedOutcome['outcome'],
    more?: OutcomeTime,
    options?: CallOptions,
  ): Promise<ReportedOutcome>;
  ping(options?: CallOptions): Promise<Health>;
  close(): Promise<void>;
}
