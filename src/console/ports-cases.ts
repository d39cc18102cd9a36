import type { AuditRow } from '../audit/audit.ts';
import type { Contest, Outcome } from '../rights/contests/contest.ts';
import type { QueueCursor, QueueFilter, QueueRow } from '../rights/contests/queue.ts';
import type { DsarDecision } from '../rights/dsar/dsar.ts';
import type { Draft, Staff } from './ports.ts';

/** What the queue and the cases need. */

export interface QueueCounts {
  readonly open: number;
  readonly overdue: number;
  readonly mine: number;
  readonly held: number;
  readonly resolved: number;
}

export interface QueuePort {
  open(
    staff: Staff,
    filter: QueueFilter,
    after: QueueCursor | null,
    limit: number,
  ): Promise<readonly QueueRow[]>;
  resolved(
    staff: Staff,
    filter: QueueFilter,
    after: QueueCursor | null,
    limit: number,
  ): Promise<readonly Contest[]>;
  counts(staff: Staff): Promise<QueueCounts>;
  /** By the id of a contest or of a request. */
  find(staff: Staff, id: string): Promise<string | null>;
  workload(staff: Staff): Promise<
    readonly {
      readonly label: string;
      readonly actor: string;
      readonly claimed: number;
      readonly nextDueAt: number;
    }[]
  >;
  /** Counts above this are told as "more than". */
  readonly cap: number;
}

export interface TrailRow {
  readonly requestId: string;
  readonly decidedAt: number;
  readonly class: string;
  readonly suspectScore: number;
  readonly overridden: boolean;
}

export interface CaseView {
  readonly contest: Contest;
  /** Null: the decision was erased. */
  readonly decision: DsarDecision | null;
  readonly incomplete: boolean;
  readonly monitor: boolean;
  /** The latest decisions of the same device, this one among them. */
  readonly trail: readonly TrailRow[];
  /** At most `cap + 1`. */
  readonly trailTotal: number;
  readonly cap: number;
  readonly earlier: readonly Contest[];
  readonly audit: readonly AuditRow[];
  readonly fourEyes: boolean;
  readonly hasOverride: boolean;
  readonly webhooks: number;
  readonly drafts: readonly Draft[];
}

export interface CasePort {
  /** Null: there is none in this tenant. */
  read(staff: Staff, contestId: string): Promise<CaseView | null>;
  claim(staff: Staff, contestId: string): Promise<void>;
  release(staff: Staff, contestId: string): Promise<void>;
  ask(staff: Staff, contestId: string, question: string): Promise<void>;
  /** @returns how it stands afterwards */
  resolve(
    staff: Staff,
    ruling: {
      readonly contestId: string;
      readonly outcome: Outcome;
      readonly reason: string;
      readonly version: number | null;
    },
  ): Promise<Contest>;
}
