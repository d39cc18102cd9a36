import type { VisitorClass } from '../schema/responses.ts';
import type { Tenant } from '../tenants/tenant.ts';
import type { IdentifiedDevice, KeyedSignals, KnownDevice } from './verdict/identity.ts';
import type { Verdict } from './verdict/verdict.ts';

/** The values that ingest and its store exchange. */

export type TenantLookup = (kid: string) => Tenant | undefined;

/** The keys by which the store looks one sighting up. */
export interface DeviceQuery {
  readonly kid: string;
  readonly durable: string;
  /** Salted hash of the client's network, good for one day. */
  readonly network: string;
  /** Days since 1970 in UTC. */
  readonly day: number;
}

/**
 * `transparency.retain = "summary"` (contract 3.5): how rare each stable signal of this request is in the
 * tenant's population, for the life of the token. Values are counted under a keyed hash and are in no row.
 */
export interface SummaryRequest extends KeyedSignals {
  readonly expiresAt: number;
}

/**
 * The part of a request's signals that is kept for the life of its token: how rare each is, never its value.
 */
export interface StoredSummary {
  /** The number of devices that were known at that time. */
  readonly devices: number;
  /** Surprisal of the joint stable hash in the tenant's population: -log2 of its share. */
  readonly jointBits: number;
  readonly signals: readonly {
    readonly name: string;
    /** -log2 of the share of this value. */
    readonly bits: number;
  }[];
}

/** The verdict of a shadow policy, which is only counted. */
export interface ShadowVerdict {
  readonly policyVersion: string;
  readonly class: VisitorClass;
  readonly day: number;
}

/** The claim that a bundle is seen for the first time. */
export interface NonceClaim {
  readonly kid: string;
  /** When the tenant was made. */
  readonly since: number;
  /** base64url of a hash of the nonce. */
  readonly nonce: string;
  /** The bundle's time, which decides when its nonce is deleted (ADR 0026). */
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
  /** Null if the tenant stores nothing of the signals. */
  readonly summary: SummaryRequest | null;
  /** Webhooks that get an event, in the same transaction. */
  readonly webhooks: readonly string[];
  /** The decision that this one supersedes. */
  readonly after?: string | undefined;
}

/**
 * The entry that was written, or the reason why none was. `stale`: an earlier claim of the nonce may have
 * been deleted already (a clock went back, a backup was restored, the skew was raised). `gone`: the tenant
 * was removed.
 */
export type Recorded = RecordEntry | 'replay' | 'stale' | 'gone';

/** One judged bundle; the rest depends on the facts known about its device. */
export interface Sighting {
  readonly claim: NonceClaim;
  /** Null if nobody was identified. */
  readonly device: DeviceQuery | null;
  /**
   * Pure except for random bytes. It is called again if a database rolled the first attempt back; the last
   * entry counts.
   */
  readonly decide: (known: KnownDevice | null) => RecordEntry;
}

/**
 * One transaction looks the device up, decides on the bundle, writes nonce, sighting and decision, and
 * commits before the answer. `spread` includes this sighting, but no simultaneous one. Of two entries with
 * one nonce at most one is recorded, on all nodes together, even if their clocks differ.
 * @throws {Unavailable} when nothing was written and the caller may try again
 */
export interface Recorder {
  record(sighting: Sighting): Promise<Recorded>;
}
