import type { ERASURE_SCOPES } from '../schema/rights.ts';

/** A row of the map of a person: what there is to say of a table. */

type Scope = (typeof ERASURE_SCOPES)[number];

/** Columns that name a person: device, request, visitorId, keyed reference of a principal, any of these. */
export type PersonColumn = 'durable' | 'request_id' | 'visitor_id' | 'principal' | 'subject';

/**
 * How an erasure finds rows. `contest`: of contested requests; `override`: of devices and of the
 * requests that were named; `link`: of a principal; `request`, `durable`: of these; `principal`, `key`: with the consent evidence.
 */
export type Way = 'contest' | 'override' | 'link' | 'request' | 'durable' | 'principal' | 'key';

/**
 * `retention`: after `retention.days`; `decision`: with the decision in the retention; `verdict-hour`, `audit-hour`: with all of its
 * hour; `audit`: with the audit log; `time`: housekeeping; `act`: somebody does something.
 */
export type Expiry = 'retention' | 'decision' | 'verdict-hour' | 'audit-hour' | 'audit' | 'time' | 'act';

/**
 * What retention takes away: rows whose time is before the cutoff (`<`), or whose end is not after it (`<=`). A legal hold of the
 * row's device keeps it.
 */
export interface Ages {
  readonly since: readonly [column: string, is: '<' | '<='];
  /** Only these. */
  readonly where?: Readonly<Record<string, string>>;
  /** Rows that keep it, found by a column of both: any that retention leaves, or open contests alone. */
  readonly keptBy?: readonly (readonly [
    rows: 'contests' | 'decisions' | 'open contests',
    by: 'durable' | 'request_id',
  ])[];
  /** No index leads to its time: the table is walked. */
  readonly walked?: true;
}

export interface SubjectTable {
  readonly key: readonly string[];
  /** Its line on the receipt. */
  readonly scope: Scope | null;
  readonly names: readonly PersonColumn[];
  /** Empty: an erasure leaves it alone. */
  readonly found: readonly Way[];
  /** Deleted with the rows of this table (ON DELETE CASCADE). */
  readonly with?: string;
  /** A legal hold may keep its rows. */
  readonly held: boolean;
  /** A person asks for it by a visitorId: a hold that keeps it keeps the visitorId too. */
  readonly byVisitor?: true;
  /** A device may have one row a visit: a large erasure marks them and deletes them in steps. */
  readonly stepped?: true;
  /** Empty: kept until the tenant leaves. */
  readonly expires: readonly Expiry[];
  /** For what expires by `retention` or `audit`. */
  readonly ages?: Ages;
  /** Which exports contain it: the person's, and the tenant's when it leaves. */
  readonly exported: readonly ('person' | 'tenant')[];
  /** After a restore its ids are compared with the tombstones. */
  readonly reapplied: boolean;
  /**
   * With the tenant: `emptied` in steps; `scanned`: the same, but no index leads there from a tenant; `cascades` with the tenant's
   * row; `stays`: of the installation.
   */
  readonly tenant: 'emptied' | 'scanned' | 'cascades' | 'stays';
}
