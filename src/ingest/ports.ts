import type { BotAuth } from '../agents/bot-auth.ts';
import type { Grants } from '../consent/doubts.ts';
import type { ProveConsent } from '../consent/proven-purposes-service.ts';
import type { RequestTier } from '../http/request.ts';
import type { Random } from '../lib/crypto.ts';
import type { Address } from '../lib/ip.ts';
import type { Plaintext } from '../schema/bundle.ts';
import type { VisitorClass } from '../schema/responses.ts';
import type { NoteVisit } from '../tenants/key-use-service.ts';
import type { Tenant } from '../tenants/tenant.ts';
import type { AttestationLimits, Past } from './attestation.ts';
import type { Sessions } from './session.ts';
import type { SummaryRequest } from './summary.ts';
import type { Verdict } from './verdict.ts';

export type IngestTenant = Tenant;

export type TenantLookup = (kid: string) => IngestTenant | undefined;

/** What is known of a device before this sighting. */
export interface KnownDevice extends Past {
  /** A reviewer found this person to be no automation. */
  readonly neverAutomation: boolean;
}

/** One sighting as the lookup is asked for it. */
export interface DeviceQuery {
  readonly kid: string;
  readonly durable: string;
  /** Salted hash of the client's network, good for one day. */
  readonly network: string;
  /** Days since 1970 in UTC. */
  readonly day: number;
}

export interface Identity {
  /** The part of the durableId after `kid|`; it never leaves the server. */
  readonly durable: string;
  readonly visitorId: string;
  readonly epoch: number;
}

export interface Identified extends Identity {
  readonly epochEndsAt: number;
  readonly network: string;
  readonly day: number;
  /** Whether this network of the device was counted today. */
  readonly marked: boolean;
}

/** A verdict that is only counted. */
export interface ShadowVerdict {
  readonly policyVersion: string;
  readonly class: VisitorClass;
  readonly day: number;
}

/** That a bundle is seen for the first time. */
export interface NonceClaim {
  readonly kid: string;
  /** When the tenant was made. */
  readonly since: number;
  /** base64url of a hash of the nonce. */
  readonly nonce: string;
  /** The bundle's own time, by which its nonce is forgotten (ADR 0026). */
  readonly datedAt: number;
}

/** One accepted bundle, to be written whole or not at all. */
export interface RecordEntry {
  readonly kid: string;
  readonly identified: Identified | null;
  readonly verdict: Verdict;
  /** What the shadow policy would have said. */
  readonly shadow: ShadowVerdict | null;
  readonly salt: string;
  /** What the tenant keeps of the signals for the life of the token. */
  readonly summary: SummaryRequest | null;
  /** Webhooks to be told, in the same transaction. */
  readonly webhooks: readonly string[];
  /** The decision that this one supersedes. */
  readonly after?: string | undefined;
}

/**
 * What was written, or why nothing was. `stale`: an earlier claim of the nonce may have been forgotten already (a clock went
 * back, a backup was restored, the skew was raised). `gone`: there is no such tenant any more.
 */
export type Recorded = RecordEntry | 'replay' | 'stale' | 'gone';

/** One bundle that was evaluated: what remains hangs on what is known of its device. */
export interface Sighting {
  readonly claim: NonceClaim;
  /** Null: there is nobody to be known. */
  readonly device: DeviceQuery | null;
  /** Pure, apart from chance: called again, and the last entry counts, where a database rolled the first back. */
  readonly decide: (known: KnownDevice | null) => RecordEntry;
}

/**
 * Looks up what is known of the device, lets the bundle be decided on that and writes, in one transaction: `spread` counts
 * this sighting already, and of two sightings that are recorded at once none knows of the other. Durable before it
 * answers: the nonce claim, the sighting and the decision commit together or not at all. Of two entries with one nonce at
 * most one is `recorded`, on any number of nodes and whatever their clocks do.
 * @throws {Unavailable} when nothing was written and the caller may try again
 */
export interface Recorder {
  record(sighting: Sighting): Promise<Recorded>;
}

/** Makes the token that lets this browser, in this session, ask about this request (contract 3.5). */
export type IssueToken = (grant: {
  readonly kid: string;
  readonly requestId: string;
  readonly session: string;
  readonly origin: string;
  readonly now: number;
  /** Whose consent was proven. */
  readonly principalId?: string | undefined;
}) => string;

/** What is known of a request that a bundle wants to supersede. */
export interface Updates {
  /** Whether it supersedes so many in a row that no other may supersede it. */
  endsChain(kid: string, requestId: string): Promise<boolean>;
  /** Keyed reference of the principal that it is linked to, or null. */
  linkedTo(kid: string, requestId: string): Promise<string | null>;
}

/** What reading and evaluating a bundle needs; neither touches the world. */
export interface EvaluateDeps {
  readonly tenants: TenantLookup;
  /** The server's time; a replay answers with the bundle's own. */
  readonly now: (plaintext: Plaintext) => number;
  /** @throws {Unavailable} when the server's clock is behind */
  readonly requireClock: () => void;
  readonly maxSkewMs: number;
  readonly epochDays: number;
}

/** What the trust boundary knows of the request that brought a bundle. */
export interface IngestInput extends RequestTier {
  readonly requestId: string;
  /** The request target as sent: `/_fp/i/v1`. */
  readonly target: string;
  /** The client behind the trust boundary; looked at, never stored. */
  readonly client: Address | null;
  /** Salted hash of the client's network, good for one day. */
  readonly network: string;
  /** The value that this response's gp_session cookie will have. */
  readonly session: string;
}

export interface IngestDeps extends EvaluateDeps {
  readonly recorder: Recorder;
  readonly botAuth: BotAuth;
  readonly proveConsent: ProveConsent;
  readonly grants: Pick<Grants, 'find' | 'note'>;
  readonly issueToken: IssueToken;
  readonly noteVisit: NoteVisit;
  readonly sessions: Pick<Sessions, 'has'>;
  readonly updates: Updates;
  readonly random: Random;
  readonly attestation: AttestationLimits;
  /** The chance above which a further network of the day is taken for another device's. */
  readonly collisionRisk: number;
}
