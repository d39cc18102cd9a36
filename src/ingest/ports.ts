import type { VisitorClass } from '../schema/responses.ts';
import type { Tenant } from '../tenants/tenant.ts';
import type { IdentifiedDevice, KeyedSignals, KnownDevice } from './verdict/identity.ts';
import type { Verdict } from './verdict/verdict.ts';

/** The values that go to the store and come back from it. */

export type TenantLookup = (kid: string) => Tenant | undefined;

/** One sighting as the lookup is asked for it. */
export interface DeviceQuery {
  readonly kid: string;
  readonly durable: string;
  /** Salted hash of the client's network, good for one day. */
  readonly network: string;
  /** Days since 1970 in UTC. */
  readonly day: number;
}

/**
 * `transparency.retain = "summary"` (contract 3.5): how rare each stable signal of this request is in the tenant's
 * population, for the life of the token. Values are counted under a keyed hash and are in no row.
 */
export interface SummaryRequest extends KeyedSignals {
  readonly expiresAt: number;
}

/** The part of a request's signals that is kept for the life of its token: how rare each is, never its value. */
export interface StoredSummary {
  /** Devices that were known when it was made. */
  readonly devices: number;
  /** Surprisal of the joint stable hash in the tenant's population: -log2 of its share. */
  readonly jointBits: number;
  readonly signals: readonly {
    readonly name: string;
    /** -log2 of the share of this value. */
    readonly bits: number;
  }[];
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
  readonly identified: IdentifiedDevice | null;
  readonly verdict: Verdict;
  /** The verdict of the shadow policy. */
  readonly shadow: ShadowVerdict | null;
  readonly salt: string;
  /** Null: the tenant keeps nothing of the signals. */
  readonly summary: SummaryRequest | null;
  /** Webhooks to be told, in the same transaction. */
  readonly webhooks: readonly string[];
  /** The decision that this one supersedes. */
  readonly after?: string | undefined;
}

/**
 * The entry that was written, or why none was. `stale`: an earlier claim of the nonce may have been forgotten already (a clock went
 * back, a backup was restored, the skew was raised). `gone`: there is no such tenant any more.
 */
export type Recorded = RecordEntry | 'replay' | 'stale' | 'gone';

/** One bundle that was judged: what remains hangs on what is known of its device. */
export interface Sighting {
  readonly claim: NonceClaim;
  /** Null: there is nobody to be known. */
  readonly device: DeviceQuery | null;
  /** Pure, apart from chance: called again, and the last entry counts, where a database rolled the first back. */
  readonly decide: (known: KnownDevice | null) => RecordEntry;
}

/**
 * One transaction looks the device up, decides on the bundle and writes nonce, sighting and decision; it commits before the answer.
 * `spread` counts this sighting already; of two sightings recorded at once neither knows of the other. Of two entries with one nonce
 * at most one is `recorded`, on any number of nodes and whatever their clocks say.
 * @throws {Unavailable} when nothing was written and the caller may try again
 */
export interface Recorder {
  record(sighting: Sighting): Promise<Recorded>;
}
