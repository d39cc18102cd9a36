import type { Config } from '../../config.ts';
import type { EpochLength } from '../../ingest/epoch-length-store.ts';
import type { StoredJobFailure } from '../job-store.ts';
import type { Pooling } from './inspect-store.ts';

/** All that the checks judge: gathered once, by reading alone. Null: it is not there, or nobody could look. */

export interface FileFact {
  readonly path: string;
  readonly uid: number;
  /** Of the lower nine bits. */
  readonly mode: number;
  readonly size: number;
  readonly modifiedAt: number;
  readonly readable: boolean;
}

export interface HostFacts {
  readonly node: string;
  /** Null where the system has no user ids. */
  readonly uid: number | null;
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Share of the inodes that is free; null where the file system has none. */
  readonly freeInodes: number | null;
  /** `tmpfs`, `network` or `disk`: where the data directory lies. */
  readonly fileSystem: 'tmpfs' | 'network' | 'disk';
  /** LoadCredential= of an installed unit, for the master key. */
  readonly unitCredential: { readonly path: string; readonly file: FileFact | null } | null;
}

export interface DataFacts {
  readonly directory: FileFact | null;
  readonly database: FileFact | null;
  readonly walBytes: number;
  readonly reserveBytes: number;
  /** Names of what an interrupted command left. */
  readonly leftovers: readonly string[];
  /** Null: there is none. */
  readonly erasureLog: { readonly lines: number; readonly problem: string | null } | null;
  /** When a stranger last sent X-Forwarded-For, and under which GPD_TRUSTED_PROXIES. */
  readonly stranger: { readonly at: number; readonly trusted: string } | null;
}

export interface MasterKeyFacts {
  readonly path: string;
  readonly file: FileFact | null;
  readonly valid: boolean;
  /** Whether it opens the server's own secret; null: nobody could try. */
  readonly opens: boolean | null;
  /** Secrets of tenants, seal keys and webhooks that it does not open. */
  readonly unopened: readonly string[];
  readonly rewrapPending: boolean;
  /** The recovery key on paper; null: nobody confirmed one. */
  readonly escrow: { readonly confirmedAt: number; readonly current: boolean } | null;
}

export interface DatabaseFacts {
  readonly kind: 'sqlite' | 'postgres';
  readonly answerMs: number;
  readonly version: string;
  /** PRAGMA name → value; empty on PostgreSQL. */
  readonly pragmas: Readonly<Record<string, string>>;
  readonly integrity: readonly string[];
  readonly foreignKeys: number;
  /** Rows of tenants that are not there, by kid. */
  readonly orphans: readonly { readonly kid: string; readonly rows: number }[];
  readonly pendingMigrations: readonly string[];
  readonly unknownMigrations: readonly string[];
  readonly missingTables: readonly string[];
  readonly encrypted: boolean | null;
  /** Null on SQLite. */
  readonly pooling: Pooling | null;
  readonly newestDecisionAt: number | null;
  readonly expiredNonces: number;
  readonly lastBackupAt: number | null;
  /** Null: no server has started yet. */
  readonly epochLength: EpochLength | null;
  /** When the housekeeping of some node last left no job failing; null: never yet. */
  readonly lastSweepAt: number | null;
  readonly lastRetentionAt: number | null;
  readonly jobFailures: readonly StoredJobFailure[];
  /** By how much the server's clock was ahead of what it believed, in its last round; null: no round yet. */
  readonly clockAheadMs: number | null;
  /** Nonces that expired before it may be forgotten. */
  readonly forgottenTo: number | null;
  /** What is changed in erasures.log, or missing. */
  readonly brokenErasureLog: string | null;
  /** Erasures that this database, restored, has not done yet. */
  readonly undoneErasures: number;
  /** Null: the tables are not there yet. */
  readonly erasures: { readonly incomplete: number } | null;
  readonly contests: { readonly overdue: number } | null;
}

export interface TenantFacts {
  readonly kid: string;
  readonly origins: readonly string[];
  readonly publishedKeys: number;
  readonly publishedAt: number | null;
  readonly stagedAt: number | null;
  /** Retiring generations whose grace has been over since then. */
  readonly overdueKeys: readonly number[];
  readonly symmetric: boolean;
  readonly activeApiKeys: number;
  /** Names of active keys that nobody used for half a year. */
  readonly idleApiKeys: readonly string[];
  readonly purposes: readonly string[];
  readonly basis: 'asserted' | 'ledger';
  readonly consentPolicies: number;
  readonly emptyNotices: readonly string[];
  readonly badPolicy: boolean;
  readonly retentionDays: number;
  /** Of those that neither an open contest nor a hold keeps. */
  readonly oldestDecisionAt: number | null;
  /** A row that consent is decided from does not carry its MAC. */
  readonly stateForged: boolean;
  readonly log: LogFacts | null;
}

export interface LogFacts {
  readonly origin: string;
  readonly entries: number;
  readonly size: number;
  /** Whether the last entry hashes to what stands beside it and in the head. */
  readonly lastFits: boolean;
  readonly headFits: boolean;
  /** Null: none was signed yet. */
  /** Why the next checkpoint would not be signed; null: it would. */
  readonly checkpointProblem: string | null;
  /** The oldest decision of a whole hour that is not sealed. */
  readonly unsealedSince: number | null;
}

export interface AgentFacts {
  readonly url: string;
  readonly source: string;
  readonly fetchedAt: number | null;
  readonly failure: string | null;
  readonly usableKeys: number;
}

export interface WebhookFacts {
  readonly name: string;
  readonly plain: boolean;
  readonly failed: number;
  readonly waiting: number;
  readonly oldestWaitingAt: number | null;
}

export interface TlsFacts {
  readonly readable: boolean;
  readonly matches: boolean;
  readonly validFrom: number;
  readonly validTo: number;
  /** Whether it names the host of the base URL. */
  readonly coversHost: boolean;
  readonly keyFile: FileFact | null;
}

export interface OidcFacts {
  /** Why the server could not read the issuer's keys, as the server words it; null: it can. */
  readonly problem: string | null;
  readonly usableKeys: number;
  /** The provider's clock minus ours, from its Date header. */
  readonly skewMs: number | null;
}

export interface ServerFacts {
  readonly url: string;
  /** Null: nothing answers there. */
  readonly health: { readonly version: string } | null;
  readonly notReady: readonly string[];
  /** When this node last completed a sweep; null: not since its start, or it runs an older gpd. */
  readonly sweptAt: number | null;
}

export interface Facts {
  readonly now: number;
  readonly version: string;
  readonly config: Config;
  readonly host: HostFacts;
  readonly data: DataFacts;
  readonly masterKey: MasterKeyFacts;
  /** Null: it cannot be read, for this reason. */
  readonly database: DatabaseFacts | { readonly failure: string };
  readonly tenants: readonly TenantFacts[];
  /** Tenants with a row that cannot be read. */
  readonly damagedTenants: readonly string[];
  readonly agents: readonly AgentFacts[];
  readonly webhooks: readonly WebhookFacts[];
  readonly tls: TlsFacts | null;
  readonly mmdb: { readonly readable: boolean; readonly builtAt: number } | null;
  readonly consoleSecret: FileFact | null;
  /** Null: no issuer is set. */
  readonly oidc: OidcFacts | null;
  readonly server: ServerFacts;
}
