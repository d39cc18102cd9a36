import type { AuditFilter, AuditRow } from '../audit/audit.ts';
import type { Scope, ScopeResult } from '../rights/erase/erasure.ts';
import type { ErasureReceipt } from '../schema/rights.ts';
import type { Staff } from './ports.ts';
import type { TrailRow } from './ports-cases.ts';

/** What the pages of a data-protection officer need. */

/** How a dpo names a subject. */
export interface SubjectKey {
  readonly kind: 'visitor' | 'request' | 'principal';
  readonly id: string;
}

export interface HoldView {
  /** Keyed reference of the device, in place of its id. */
  readonly device: string;
  readonly handle: string;
  readonly scope: Scope;
  readonly basis: string;
  readonly createdAt: number;
  /** Who asked for the erasure that waits for it. */
  readonly requestedBy: string | null;
}

export interface HoldPage {
  readonly holds: readonly HoldView[];
  /** There are younger ones. */
  readonly more: boolean;
}

export interface SubjectView {
  readonly key: SubjectKey;
  readonly handle: string;
  readonly device: {
    readonly firstSeenAt: string | null;
    readonly lastSeenAt: string | null;
    readonly seen: number;
  } | null;
  readonly decisions: number;
  readonly latest: readonly TrailRow[];
  readonly contests: readonly {
    readonly contestId: string;
    readonly filedAt: string;
    readonly outcome: string | null;
  }[];
  readonly links: number;
  readonly hasOverride: boolean;
  readonly consentEvents: number;
  readonly shared: boolean;
  readonly holds: readonly HoldView[];
  /** Settings without which an export names nobody who is responsible. */
  readonly unnamed: readonly string[];
  /** Scopes that a hold can keep; none when no device is known. */
  readonly holdable: readonly Scope[];
}

export interface ErasurePlan {
  readonly key: SubjectKey;
  readonly handle: string;
  readonly scopes: readonly ScopeResult[];
  readonly shared: boolean;
}

export interface ReceiptView extends ErasureReceipt {
  readonly erasedAtMs: number;
}

export interface ReceiptsView {
  readonly receipts: readonly ReceiptView[];
  /** Ids of those whose rows are damaged. */
  readonly unreadable: readonly string[];
}

export interface SubjectPort {
  /** Null: nothing is held. Searching is audited. */
  find(staff: Staff, key: SubjectKey): Promise<SubjectView | null>;
  /** Preview of what would be deleted. */
  plan(staff: Staff, key: SubjectKey): Promise<ErasurePlan | null>;
  erase(staff: Staff, key: SubjectKey): Promise<ErasureReceipt>;
  /**
   * @param unnamed also where it names nobody who is responsible
   * @returns the id of the job; `unnamed` when it would name nobody; null when nothing is held
   */
  startExport(staff: Staff, key: SubjectKey, unnamed: boolean): Promise<string | null>;
  placeHold(staff: Staff, key: SubjectKey, scopes: readonly Scope[], basis: string): Promise<boolean>;
  /** @returns the receipt of the erasure that had waited, if one had; null: there is no such hold */
  releaseHold(
    staff: Staff,
    device: string,
    scope: string,
  ): Promise<{ readonly receipt: ErasureReceipt | null } | null>;
  /** The oldest first, after the one that is named. */
  holds(staff: Staff, after: { readonly device: string; readonly scope: string } | null): Promise<HoldPage>;
  receipts(staff: Staff, limit: number): Promise<ReceiptsView>;
  receipt(staff: Staff, id: string): Promise<ReceiptView | null>;
}

/** Work that takes longer than a page may: the page looks again until it is done. */
export interface JobView {
  readonly id: string;
  readonly kind: 'export' | 'verify';
  readonly state: 'running' | 'done' | 'failed';
  readonly done: number;
  readonly total: number;
  readonly startedAt: number;
  /** Of an export that is done. */
  readonly file: {
    readonly name: string;
    readonly type: string;
    readonly bytes: number;
  } | null;
  readonly result: unknown;
}

export interface JobPort {
  /** One's own jobs alone, whichever node works at them. */
  get(staff: Staff, id: string): Promise<JobView | null>;
  /** What its file holds. @throws {Refusal} when it goes meanwhile */
  read(staff: Staff, id: string): AsyncIterable<Uint8Array>;
}

export interface AuditPort {
  list(staff: Staff, filter: AuditFilter, limit: number): Promise<readonly AuditRow[]>;
  /** Every row that fits, and one more that says that they were exported. */
  exportAll(staff: Staff, filter: AuditFilter): Promise<AsyncIterable<readonly AuditRow[]>>;
}
