/*
 * The public types of the banner. The build publishes this file inside embed.d.ts, so it imports nothing;
 * test/banner/types.test.ts holds it to src/schema and to the agent.
 */

/**
 * The receipt for the agent (interface section 2): an assertion, which the ledger proves if the tenant
 * requires it.
 */
export interface ConsentReceipt {
  /** Ids of purposes that are granted now; empty after a refusal, and when the server could not be asked. */
  readonly purposes: readonly string[];
  /** Global Privacy Control, of this browser or of a header that a proxy added. */
  readonly gpc: boolean;
  /** Version of the policy that the choice was made under. */
  readonly version: number;
  /** Epoch milliseconds of the choice. */
  readonly issuedAt: number;
  /** The ledger's entry for the grant. */
  readonly proof?: { readonly seq: number; readonly hash: string } | undefined;
  readonly principalId?: string | undefined;
  /** The person agreed to `device-identification` alone under GPC. Not sent: the server asks the ledger. */
  readonly overGpc?: true | undefined;
}

/** The person is asked about `expired`, `policy-outdated` and `unasked`. Only `granted` allows processing. */
export type PurposeStatus =
  | 'granted'
  | 'denied'
  | 'withdrawn'
  | 'expired'
  | 'policy-outdated'
  | 'gpc-opt-out'
  | 'unasked';

export interface PurposeState {
  readonly id: string;
  readonly title: string;
  readonly status: PurposeStatus;
  /** When the choice ends and the person is asked again, in epoch milliseconds. */
  readonly until: number | null;
}

export interface ConsentSnapshot {
  /** `asking`: a purpose is open. `unavailable`: the server could not be asked, so nothing is granted. */
  readonly phase: 'loading' | 'asking' | 'decided' | 'unavailable';
  /**
   * Why the phase is `unavailable`: an error code of the server, or `unreachable`, `no-key`, `secret-key`,
   * `invalid-key`, `insecure-context`.
   */
  readonly problem: string | null;
  readonly gpc: boolean;
  readonly granted: readonly string[];
  readonly purposes: readonly PurposeState[];
  /** The principal of this browser; null before the first choice. */
  readonly principalId: string | null;
}

/**
 * `recorded`: in the ledger. `kept`: in force in this browser, and sent later. `failed`: nothing was granted.
 */
export interface ChoiceResult {
  readonly outcome: 'recorded' | 'kept' | 'failed';
  /** The server's error code, or `unreachable`. */
  readonly problem: string | null;
}

export type LinkResult =
  | {
      readonly linked: true;
      readonly principalId: string;
      readonly requestId: string;
      readonly linkedAt: string;
    }
  | { readonly linked: false; readonly status: number; readonly error: string };

export type JoinResult =
  | {
      readonly joined: true;
      /** The principal of the account. */
      readonly principalId: string;
      readonly joinedAt: string;
    }
  | { readonly joined: false; readonly status: number; readonly error: string };

export interface ChangedSnapshot extends ConsentSnapshot {
  /**
   * True if the ledger has every choice of this browser. Right after a refusal it is false; the event
   * `recorded` follows.
   */
  readonly recorded: boolean;
}

/** One write that the ledger has recorded. */
export interface RecordedChoices {
  /** Number of the write's last entry in the log. */
  readonly seq: number;
  /** Each key is the id of a purpose. */
  readonly choices: Readonly<Record<string, 'granted' | 'denied' | 'withdrawn'>>;
  readonly recorded: boolean;
}

export interface ConsentEvents {
  /** The state is known for the first time, or could not be loaded. */
  readonly ready: ConsentSnapshot;
  /**
   * Granted or open purposes changed: here, in another tab or in the ledger. A refusal counts at once, a
   * grant when recorded.
   */
  readonly change: ChangedSnapshot;
  /** The ledger has recorded a choice of this browser. */
  readonly recorded: RecordedChoices;
  /** The settings were opened or closed. */
  readonly open: ConsentSnapshot;
  readonly close: ConsentSnapshot;
}

export interface GpdConsent {
  /** Resolves when the state is known. After a change the property holds a new promise, of the new state. */
  readonly ready: Promise<ConsentSnapshot>;
  /** Waits while the person is asked and nothing is granted. Never rejects. */
  receipt(): Promise<ConsentReceipt>;
  state(): ConsentSnapshot;
  /** Opens the settings. If the server could not be asked before, it is asked again. */
  open(): void;
  /** Withdraws all purposes, or those named. It takes effect here at once, even if the server fails. */
  withdraw(purposes?: string | readonly string[]): Promise<ChoiceResult>;
  /** @returns a function that stops listening */
  on<Name extends keyof ConsentEvents>(name: Name, listen: (state: ConsentEvents[Name]) => void): () => void;
  /** Runs gated scripts that were added after the page was loaded. */
  activate(): void;
  /**
   * Ties the request of an ingest answer to a logged-in principal.
   * @param session `gpd_ps_…`, which your backend opened for the principal
   * @param token `transparencyToken` of the ingest answer
   */
  link(session: string, token: string): Promise<LinkResult>;
  /**
   * Joins this browser with the account of a logged-in person and takes over what the account has chosen.
   * From then on each choice, here or there, counts for both. Call it on every page of a logged-in person.
   * @param session `gpd_ps_…`, which your backend opened for the account
   */
  join(session: string): Promise<JoinResult>;
}

/** Options of `startBanner`, for a page that imports the banner from `@gpd/browser/banner`. */
export interface BannerOptions {
  /** The publishable key of the tenant. */
  readonly key: string;
  /** Address of gpd, such as `https://id.shop.example`. */
  readonly server: string;
  /** A language tag; by default that of the page, then those of the browser. */
  readonly language?: string | undefined;
  readonly theme?: 'light' | 'dark' | undefined;
  /** `cookie`: keep the choices in a cookie instead of `localStorage`. */
  readonly store?: 'cookie' | undefined;
  /** Domain of that cookie, such as `.shop.example`. */
  readonly domain?: string | undefined;
  /** Google Consent Mode v2, such as `analytics_storage=analytics`. */
  readonly googleConsent?: string | undefined;
}
