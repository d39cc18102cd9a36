/*
 * The public types of the agent. The build publishes this file inside agent.d.ts, so it imports nothing;
 * test/agent/types.test.ts holds it to src/schema.
 */

/** The person's grant. The page asserts it; the server honours GPC again and decides. */
export interface ConsentReceipt {
  /** Purpose ids; without `device-identification` the agent collects nothing. */
  readonly purposes: readonly string[];
  /** Global Privacy Control as the consent banner saw it. */
  readonly gpc: boolean;
  /** Consent-policy version, an integer. */
  readonly version: number;
  /** Epoch milliseconds. */
  readonly issuedAt: number;
  /** Ledger proof, for a tenant with `consent.basis = "ledger"`. */
  readonly proof?: { readonly seq: number; readonly hash: string } | undefined;
  readonly principalId?: string | undefined;
  /** The person agreed to `device-identification` alone under GPC. Not sent: the server asks the ledger. */
  readonly overGpc?: true | undefined;
}

/** Options for `update`; those left out keep their value from `identify`. */
export type UpdateOptions = Pick<IdentifyOptions, 'timeoutMs'> &
  Partial<Pick<IdentifyOptions, 'consent' | 'context'>>;

export interface IdentifyOptions {
  /** The tenant's key id. */
  readonly kid: string;
  /** Base address of the gpd server; by default the address of this script without `/v1/agent.js`. */
  readonly endpoint?: string | undefined;
  /** The receipt, or a function that waits for the person's choice. Null refuses. */
  readonly consent: ConsentReceipt | null | (() => ConsentReceipt | null | Promise<ConsentReceipt | null>);
  /** Address of agent-worker.js on the page's origin; null: none; default: next to a same-origin script. */
  readonly workerUrl?: string | null | undefined;
  /** Milliseconds for everything after the consent; default 10,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Your name for what the verdict is for, such as an order: 1 to 64 of `A-Z a-z 0-9 . _ : -`. gpd stores it
   * with the decision, and your backend compares it. It must name no person.
   */
  readonly context?: string | undefined;
  /**
   * Asks for a passkey if the verdict says `needsAttestation`: only in a click of the person, with the
   * purpose `device-attestation`. A verdict of the last four minutes that needs it is attested without a new
   * visit.
   */
  readonly attest?: 'passkey' | undefined;
}

/** The server answered with a verdict; `response.reason` says how it came about. */
export interface Identified {
  readonly sent: true;
  readonly status: number;
  readonly response: IngestResponse;
  /**
   * Milliseconds by which this device's clock is ahead (negative: behind), if the agent corrected the
   * bundle's time.
   */
  readonly clockAheadMs?: number | undefined;
  /** No worker file was named, or it did not answer: rules that compare page and worker could not fire. */
  readonly incomplete?: 'worker' | undefined;
  /**
   * The result of `attest`; absent if the verdict needs none. All but `attested` leave the verdict unchanged:
   * the person declined or took too long, did not press anything, or has not agreed to `device-attestation`.
   */
  readonly passkey?: 'attested' | 'declined' | 'failed' | 'not-pressed' | 'not-consented' | undefined;
}

/** Refused in the browser: nothing was collected, fetched or sent. */
export interface Refused {
  readonly sent: false;
  readonly reason: 'consent-missing' | 'gpc';
  readonly message: string;
}

/** No verdict: no answer came, or it was not an IngestResponse. */
export interface Unavailable {
  readonly sent: false;
  readonly reason: 'unavailable';
  /**
   * `refused`: the server refused the request before judging it (413, 415, 429, 431, 5xx). `no-browser`: a
   * server rendered the page.
   */
  readonly cause:
    | 'insecure-context'
    | 'key'
    | 'network'
    | 'timeout'
    | 'refused'
    | 'internal'
    | 'no-browser'
    | 'nothing-to-update'
    | 'context';
  readonly status: number | null;
  /** The server's error code, such as `unknown-kid` or `rate-limited`. */
  readonly error: string | null;
  /** From Retry-After, if the browser may read it. */
  readonly retryAfterSeconds: number | null;
  readonly message: string;
}

export type IdentifyResult = Identified | Refused | Unavailable;

export type VisitorClass = 'human' | 'declared_agent' | 'undeclared_automation' | 'unknown';

export type IngestReason =
  | 'ok'
  | 'consent-missing'
  | 'replay'
  | 'stale'
  | 'decrypt-failed'
  | 'unknown-key'
  | 'unknown';

export interface SmartSignals {
  readonly bot: boolean;
  readonly incognito: false;
  readonly tampered: boolean;
  readonly inconsistency: number;
}

export interface ConsentState {
  readonly purposes: readonly string[];
  readonly gpc: boolean;
  readonly gpcSource: 'none' | 'header' | 'bundle' | 'both';
  readonly version: number;
  readonly issuedAt: number;
  readonly basis: 'asserted' | 'proven';
}

export interface IngestResponse {
  readonly class: VisitorClass;
  readonly visitorId: string | null;
  readonly deviceId: null;
  readonly declaredAgentId: string | null;
  /**
   * Confidence in the identity, not in the class: 0.99 repeat sighting, 0.6 first sighting, 0 not identified.
   */
  readonly confidence: number;
  readonly suspectScore: number | null;
  readonly smartSignals: SmartSignals;
  readonly needsAttestation: boolean;
  readonly consentState: ConsentState;
  readonly reason: IngestReason;
  readonly requestId: string;
  readonly transparencyToken?: string | undefined;
  /** A passkey distinguished this device from identical ones. */
  readonly attested?: { readonly by: 'passkey'; readonly deviceBound: boolean } | undefined;
  /** A machine gave the consent that this visit used: the banner asks the person. */
  readonly askAgain?: true | undefined;
}

export interface SealedBundle {
  readonly kid: string;
  readonly iv: string;
  readonly ct: string;
  readonly epk: string;
}

/** The answer of GET /_fp/pubkey. */
export interface Recipient {
  readonly kid: string;
  /** base64 of the 65-byte uncompressed P-256 point. */
  readonly publicKey: string;
}

/** The groups of `signals`; null where a browser lacks something. */
export type CollectedSignals = Readonly<Record<string, unknown>>;
